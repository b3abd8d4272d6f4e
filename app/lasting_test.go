package app

import (
	"testing"
	"time"
)

func TestLasting(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                          "0s",
		1499 * time.Millisecond:    "1s",
		24*time.Hour - time.Second: "23h59m59s",
		24*time.Hour - 1:           "1d",
		24*time.Hour + time.Minute: "1d",
		412*time.Hour + 3*time.Minute + 7*time.Second: "17d4h",
		-3 * time.Second: "-3s", // the block producer's clock is ahead
		-50 * time.Hour:  "-2d2h",
	} {
		if got := Lasting(d); got != want {
			t.Errorf("%v is %s, expected %s", d, got, want)
		}
	}
}
