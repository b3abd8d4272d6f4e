package dashboard

// homePage is the data of the template home.
type homePage struct {
	Networks []Network
	Sample   string
	Answer   string // of the sample; empty if nothing is served
	First    bool   // there is no operator yet
}

// first serves /: the home page, or the overview of a signed-in user.
func (v *visit) first() error {
	if v.who != nil {
		return v.overview()
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	p := homePage{Networks: networks, Sample: "No network is served yet.", First: v.dashboard.config.Accounts.AwaitsFirst()}
	if len(networks) > 0 {
		n := &networks[0]
		p.Sample = n.Snippets(endpoint(v.r, n, keyPlace), "")[0].Text
		p.Answer = `{"jsonrpc":"2.0","id":1,"result":` + n.HeadResult + `}`
	}
	return v.show(200, "home", "A blockchain data service", p)
}
