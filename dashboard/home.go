package dashboard

import "fmt"

// homePage is what the template of the same name is given.
type homePage struct {
	Networks []Network
	Sample   string
	Answer   string // to the sample; empty where nothing is served
}

// first is the page at /: what the service is, or how it is used by who is signed in.
func (v *visit) first() error {
	if v.who != nil {
		return v.overview()
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	p := homePage{Networks: networks, Sample: "No network is served yet."}
	for _, n := range networks {
		p.Sample = snippets(n.Family, endpoint(v.r, &n, keyPlace), "")[0].Text
		p.Answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":"%#x"}`, n.Head)
		if n.Family == familyStarknet {
			p.Answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%d}`, n.Head)
		}
		if n.Family == familyEVM {
			break
		}
	}
	return v.show(200, "home", "A blockchain data service", p)
}
