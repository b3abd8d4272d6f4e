package app

import (
	"fmt"
	"time"
)

// Lasting formats a duration for people, with days: 17d4h. Below a day it is in seconds, as 3h4m5s.
func Lasting(d time.Duration) string {
	const day = 24 * time.Hour
	if d = d.Round(time.Second); d > -day && d < day {
		return d.String()
	}
	hours := int64(d / time.Hour)
	if hours%24 == 0 {
		return fmt.Sprintf("%dd", hours/24)
	}
	return fmt.Sprintf("%dd%dh", hours/24, max(hours%24, -(hours%24)))
}
