package dashboard

import (
	"time"

	"ashlar/account/usage"
)

// servicePage is the data of the template service.
type servicePage struct {
	Days     int
	Sum      figures
	Pictures []picture
	Table    usageTable
}

// shownMethods is the number of methods that the page lists.
const shownMethods = 15

// service shows operators the usage of all accounts together.
func (v *visit) service() error {
	now := time.Now()
	first := day(now).AddDate(0, 0, 1-overviewDays)
	lines, err := v.dashboard.config.Usage.Read(v.r.Context(), usage.Query{All: true, From: first, To: now, By: usage.ByDay | usage.ByNetwork | usage.ByMethod})
	if err != nil {
		return err
	}
	methods := tallies(lines, methodName)
	return v.show(200, "service", "Whole service", servicePage{
		Days: overviewDays, Sum: figuresOf(lines, now), Pictures: overviewPictures(lines, first),
		Table: usageTable{"Most used methods", "Method", methods[:min(len(methods), shownMethods)]},
	})
}
