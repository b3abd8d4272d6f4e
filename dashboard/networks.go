package dashboard

import (
	"fmt"

	"ashlar/account"
)

// networksPage is the data of the template networks.
type networksPage struct{ Networks []networkCard }

// networkCard is a network with its state.
type networkCard struct {
	Network
	State string
	Mood  string // CSS class of the badge
	URL   string
}

func (v *visit) networks() error {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	var p networksPage
	for _, n := range networks {
		card := networkCard{Network: n, URL: endpoint(v.r, &n, keyPlace)}
		card.State, card.Mood = n.state()
		if v.who.Role != account.RoleOperator {
			card.Alert = ""
		}
		if n.Problem != "" && v.who.Role != account.RoleOperator {
			card.Problem = "operators can see the reason" // it may contain addresses of nodes
		}
		p.Networks = append(p.Networks, card)
	}
	return v.show(200, "networks", "Networks", p)
}

// state describes how up to date a network is.
func (n *Network) state() (text, mood string) {
	switch {
	case n.Problem != "":
		return "not following", "bad"
	case n.Follows && n.Behind > 0:
		text = count(n.Behind) + " blocks behind"
		if n.Rate > 0 {
			text += fmt.Sprintf(", %.0f blocks/s", n.Rate)
		}
		if n.Remaining > 0 {
			text += ", " + n.Remaining.String() + " remaining"
		}
		return text, "warn"
	case n.Follows:
		return "at the head", "good"
	}
	return "up to block " + count(n.Head), ""
}
