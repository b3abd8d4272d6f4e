// Package networks serves the pages about the networks and the limits of the service.
package networks

import (
	"ashlar/account"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAccount("GET /networks", account.TeamViewer, show),
		site.ForOperators("GET /limits", showLimits),
	}
}

// networksPage is the data of the template networks.
type networksPage struct {
	Networks []networkCard
	Unserved []site.Unserved
	Events   events // of the service
}

// networkCard is a network with its state.
type networkCard struct {
	site.Network
	State  string
	Mood   string // CSS class of the badge
	URL    string
	Cache  string // share of reads that the cache answered; empty if there were none
	Lines  []upstreamLine
	Events events
}

// events are the last events of a network, newest first.
type events struct {
	Of      string // the network's name
	Newest  []site.Event
	Earlier []site.Event // folded away
}

// newestEvents is the number of events that are not folded away.
const newestEvents = 5

func eventsOf(v *site.Visit, network string) events {
	all := v.Config.Events(network)
	n := min(len(all), newestEvents)
	return events{network, all[:n], all[n:]}
}

// upstreamLine is a node in a list.
type upstreamLine struct {
	site.Upstream
	Lag     string // blocks behind the highest head of the nodes
	Latency string
}

func show(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	var p networksPage
	for _, n := range networks {
		card := networkCard{Network: n, URL: site.Endpoint(v.R, &n, site.KeyPlace)}
		card.State, card.Mood = n.State()
		if v.Who.Role != account.RoleOperator {
			card.Alert, card.Consensus, card.Store = "", "", site.Store{} // addresses of nodes, and what the machine has
		} else {
			card.Lines, card.Cache, card.Events = upstreamLines(n.Upstreams), cacheShare(n.Store), eventsOf(v, n.Name)
		}
		if v.Who.Role != account.RoleOperator {
			card.Problem, card.Unreadable = forOperators(n.Problem), forOperators(n.Unreadable)
		}
		p.Networks = append(p.Networks, card)
	}
	for _, u := range v.Config.Unserved(v.R.Context()) {
		switch {
		case v.Who.Role == account.RoleOperator:
			p.Unserved = append(p.Unserved, u)
		case u.Missed:
			u.Why = forOperators(u.Why)
			p.Unserved = append(p.Unserved, u)
		}
	}
	if v.Who.Role == account.RoleOperator {
		p.Events = eventsOf(v, "")
	}
	return v.Show(200, "networks", "Networks", p)
}

// forOperators replaces a reason, which may contain addresses of nodes.
func forOperators(reason string) string {
	if reason == "" {
		return ""
	}
	return "operators can see the reason"
}

func upstreamLines(all []site.Upstream) (lines []upstreamLine) {
	var best uint64
	for _, u := range all {
		best = max(best, u.Head)
	}
	for _, u := range all {
		line := upstreamLine{Upstream: u, Lag: site.Count(best - u.Head), Latency: "–"}
		if u.Head == 0 {
			line.Lag = "–"
		}
		if u.Latency > 0 {
			line.Latency = site.Duration(u.Latency)
		}
		lines = append(lines, line)
	}
	return lines
}

// cacheShare formats the share of reads that the cache has answered.
func cacheShare(s site.Store) string {
	if s.CacheHits+s.CacheMisses <= 0 {
		return ""
	}
	return site.Share(uint64(s.CacheHits), uint64(s.CacheHits+s.CacheMisses))
}
