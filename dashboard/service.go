package dashboard

import (
	"time"

	"ashlar/account/usage"
)

// servicePage is what the template of the same name is given.
type servicePage struct {
	Days     int
	Sum      figures
	Pictures []picture
	Table    usageTable
}

// shownMethods is how many methods the page lists.
const shownMethods = 15

// service shows operators what is done with the keys of all accounts together.
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
		Table: usageTable{"The methods that were called most", "Method", methods[:min(len(methods), shownMethods)]},
	})
}
