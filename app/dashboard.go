package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/app/recent"
	"ashlar/dashboard"
	"ashlar/dashboard/site"
	"ashlar/family"
	"ashlar/gateway"
)

// newDashboard makes the dashboard.
func (s *Service) newDashboard() (http.Handler, error) {
	return dashboard.New(site.Config{
		Accounts: s.accounts, Keys: s.keys, Sessions: s.sessions, Usage: s.usage, Failures: s.failures, Networks: s.shownNetworks,
		Unserved:  s.shownUnserved,
		Allowance: func(k *account.Key) account.Allowance { return s.handler.Allowance(k) },
		Events:    func(network string) []site.Event { return shownEvents(recent.Of(slog.Default()).Of(network)) },
		Limits:    func() []site.LimitGroup { return shownLimits(s.current.Load(), s.handler.Stats()) },
		Call: func(ctx context.Context, c site.Call, read func(site.Answer)) {
			s.handler.Do(ctx, gateway.Call(c), func(r gateway.Reply) { read(site.Answer(r)) })
		},
		Status: func() bool { return s.current.Load().Dashboard.Status },
		URL:    func() string { return s.current.Load().DashboardURL() },
		Log:    slog.Default(),

		Provider: s.provider, Provided: s.config.Accounts.OIDC.Policy(),
	})
}

// shownNetworks returns the networks for the dashboard.
func (s *Service) shownNetworks(ctx context.Context) ([]site.Network, error) {
	all, c, alert := make([]site.Network, 0, len(s.Networks())), s.current.Load(), s.alert()
	for n := range s.asked() {
		presented := n.family.Presentation()
		shown := site.Network{
			Name: n.Name, Family: n.family.Name(), Hosts: c.HostsOf(n.Name), Methods: describedMethods(c, n), Alert: alert,
			Snippets: func(url, password string) []site.Snippet {
				return shownSnippets(presented.Snippets(url, password))
			},
			Programs: func(url, password, method string, params json.RawMessage) []site.Snippet {
				return shownSnippets(presented.Programs(url, password, method, params))
			},
		}
		status, err := n.Status(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			shown.Unreadable = NewUnreadable(n.Name, err).Why
		default:
			n.show(&shown, &status, c.Networks[n.Name].Behind)
		}
		all = append(all, shown)
	}
	return all, nil
}

// shownUnserved returns the networks for the dashboard that are not served.
func (s *Service) shownUnserved(ctx context.Context) (all []site.Unserved) {
	c := s.current.Load()
	for _, u := range s.Unserved(ctx) {
		all = append(all, site.Unserved{Name: u.Name, Why: u.Why, Missed: u.missed(c)})
	}
	return all
}

// show adds what the status of the network says. behind is the bound of the configuration.
func (n *Network) show(shown *site.Network, status *family.Status, behind time.Duration) {
	presented := n.family.Presentation()
	shown.Chain = cmp.Or(status.Chain, strconv.FormatUint(status.ChainID, 10))
	shown.First, shown.FirstState, shown.FirstProof = status.First, status.FirstState, status.FirstProof
	shown.Settled, shown.Disk = status.Settled, status.DiskBytes
	shown.Head, shown.HeadTime = status.Head, time.Unix(int64(status.HeadTime), 0)
	shown.History, shown.HeadResult = presented.History, presented.HeadResult(status.Head)
	if fork := status.UnknownFork; fork != nil {
		shown.Warning = fork.Warning(time.Now())
	}
	if source := status.Source; source != nil {
		shown.Follows, shown.Behind, shown.Problem = true, source.Behind, source.Problem
	}
	shown.Upstreams, shown.Consensus, shown.Store = shownUpstreams(status.Source), shownConsensus(status), n.shownStore()
	if status.Consensus != nil {
		shown.Follows, shown.Behind = true, status.Behind()
	}
	if err := notReady(status, behind, time.Now()); err != nil {
		shown.Problem = err.Error()
	}
	if status.CatchUp != nil {
		shown.Rate, shown.Remaining = status.CatchUp.Rate, time.Duration(status.CatchUp.Remaining)*time.Second
	}
}

// alert says what is wrong with the server whatever its networks are, "" if nothing is.
func (s *Service) alert() string {
	if unsaved := s.accounts.Unsaved(); unsaved != nil {
		return unsaved.String()
	}
	if refused := s.accountsRefused(); refused != nil {
		return "accounts and keys cannot be changed: " + refused.Error()
	}
	if err := s.serverProblem(); err != nil {
		return "the server is not ready: " + err.Error()
	}
	return ""
}

func shownUpstreams(source *family.SourceStatus) (all []site.Upstream) {
	if source == nil {
		return nil
	}
	for _, u := range source.Upstreams {
		all = append(all, site.Upstream{
			Name: u.Name, Head: u.Head, Used: u.Used, Why: cmp.Or(u.Why, u.Differs), Latency: time.Duration(u.Latency) * time.Microsecond,
			Failures: u.Failures, Invalid: u.Invalid + u.TooDeep,
		})
	}
	return all
}

// shownConsensus names a consensus client and says when it last named a head.
func shownConsensus(status *family.Status) string {
	c := status.Consensus
	if c == nil {
		return ""
	}
	if light := status.LightClient; light != nil {
		return shownLightClient(light)
	}
	if c.Forkchoice == 0 {
		return "no consensus client has named a head since the start"
	}
	return fmt.Sprintf("%s, last heard at %s", cmp.Or(c.Client, "unknown"), time.Unix(c.Forkchoice, 0).UTC().Format(time.RFC3339))
}

// shownLightClient says what a light client sees, with the nodes that it does not use.
func shownLightClient(light *family.LightClientStatus) string {
	text := "light client that has named no head since the start"
	if light.Named != 0 {
		text = fmt.Sprintf("light client: head in slot %d, finalized slot %d, present slot %d", light.Head, light.Finalized, light.Slot)
	}
	for _, n := range light.Nodes {
		if n.Why != "" {
			text += fmt.Sprintf("; %s: %s", n.Name, n.Why)
		}
	}
	return text
}

func shownEvents(all []recent.Event) []site.Event {
	shown := make([]site.Event, len(all))
	for i, e := range all {
		shown[i] = site.Event(e)
	}
	return shown
}

func (n *Network) shownStore() site.Store {
	if n.store == nil {
		return site.Store{}
	}
	s := n.store.Stats()
	return site.Store{Memory: s.MemoryBytes, Free: s.FreeBytes, Backlog: s.Backlog, CacheHits: s.CacheHits, CacheMisses: s.CacheMisses}
}

func shownSnippets(all []family.Snippet) []site.Snippet {
	shown := make([]site.Snippet, len(all))
	for i, s := range all {
		shown[i] = site.Snippet(s)
	}
	return shown
}

// describedMethods returns the methods of a network, with their prices.
func describedMethods(c *config.Config, n *Network) []site.Method {
	all := make([]site.Method, 0, n.methods.Len())
	for m := range n.methods.All() {
		all = append(all, site.Method{Method: m, Credits: credits(c, m), Restricted: account.MatchesMethod(c.Networks[n.Name].Restricted, m.Name)})
	}
	return all
}
