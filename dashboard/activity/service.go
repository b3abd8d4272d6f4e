package activity

import (
	"time"

	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

// servicePage is the data of the template service.
type servicePage struct {
	Live     live
	Tabs     []tab
	Span     span
	Sum      tally
	Failing  failing
	Pictures []picture
	Table    usageTable
}

// shownMethods is the number of methods that the page lists.
const shownMethods = 15

// showService shows operators the usage of all accounts together.
func showService(v *site.Visit) (err error) {
	now := time.Now()
	p := servicePage{Span: readSpan(v.R.URL.Query(), spanDay)}
	p.Tabs = tabs(v, p.Span)
	if p.Live, err = readLive(v, usage.Query{All: true}); err != nil {
		return err
	}
	t := newTimeline(p.Span, now)
	lines, err := v.Config.Usage.Read(v.R.Context(), usage.Query{All: true, From: t.from, To: now, By: t.by | usage.ByNetwork | usage.ByMethod})
	if err != nil {
		return err
	}
	for _, l := range lines {
		p.Sum.Add(l.Counts)
	}
	p.Pictures = []picture{t.outcomes(lines), t.byNetwork(lines), t.latency(lines)}
	p.Failing = newFailing(v, t, lines, "")
	for i := range p.Failing.Causes {
		if line := &p.Failing.Causes[i]; line.Path == "/keys" { // those of others
			line.Path = ""
		}
	}
	methods := tallies(lines, methodName)
	p.Table = usageTable{"Most used methods", "Method", methods[:min(len(methods), shownMethods)]}
	return v.Show(200, "service", "Whole service", &p) // the template calls methods of pointers
}
