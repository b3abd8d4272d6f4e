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
	Cache string // share of reads that the cache answered; empty if there were none
	Lines []upstreamLine
}

// upstreamLine is a node in a list.
type upstreamLine struct {
	Upstream
	Lag     string // blocks behind the highest head of the nodes
	Latency string
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
			card.Alert, card.Consensus, card.Store = "", "", Store{} // addresses of nodes, and what the machine has
		} else {
			card.Lines, card.Cache = upstreamLines(n.Upstreams), cacheShare(n.Store)
		}
		if n.Problem != "" && v.who.Role != account.RoleOperator {
			card.Problem = "operators can see the reason" // it may contain addresses of nodes
		}
		p.Networks = append(p.Networks, card)
	}
	return v.show(200, "networks", "Networks", p)
}

func upstreamLines(all []Upstream) (lines []upstreamLine) {
	var best uint64
	for _, u := range all {
		best = max(best, u.Head)
	}
	for _, u := range all {
		line := upstreamLine{Upstream: u, Lag: count(best - u.Head), Latency: "–"}
		if u.Head == 0 {
			line.Lag = "–"
		}
		if u.Latency > 0 {
			line.Latency = duration(u.Latency)
		}
		lines = append(lines, line)
	}
	return lines
}

// cacheShare formats the share of reads that the cache has answered.
func cacheShare(s Store) string {
	if s.CacheHits+s.CacheMisses <= 0 {
		return ""
	}
	return share(uint64(s.CacheHits), uint64(s.CacheHits+s.CacheMisses))
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
