package dashboard

import (
	"ashlar/dashboard/activity"
	"ashlar/dashboard/site"
)

// homePage is the data of the template home.
type homePage struct {
	Networks []site.Network
	Sample   string
	Answer   string // of the sample; empty if nothing is served, or the network cannot be read
	First    bool   // no operator exists yet
}

// first serves /: the home page, or the overview of a signed-in user.
func first(v *site.Visit) error {
	if v.Who != nil {
		return activity.Overview(v)
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	p := homePage{Networks: networks, Sample: "No network is served yet.", First: v.Config.Accounts.AwaitsFirst()}
	if len(networks) > 0 {
		n := &networks[0]
		p.Sample = n.Snippets(site.Endpoint(v.R, n, site.KeyPlace), "")[0].Text
		if n.Unreadable == "" {
			p.Answer = `{"jsonrpc":"2.0","id":1,"result":` + n.HeadResult + `}`
		}
	}
	return v.Show(200, "home", "A blockchain data service", p)
}
