package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/dashboard"
	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// newDashboard makes the pages of a service.
func (s *service) newDashboard() (*dashboard.Dashboard, error) {
	return dashboard.New(dashboard.Config{
		Accounts: s.accounts, Keys: s.keys, Sessions: s.sessions, Usage: s.usage, Networks: s.shownNetworks,
		Limits: func() []dashboard.LimitGroup { return shownLimits(s.current.Load(), s.handler.Stats()) },
		Call: func(ctx context.Context, c dashboard.Call, read func(dashboard.Answer)) {
			s.handler.Do(ctx, gateway.Call(c), func(r gateway.Reply) { read(dashboard.Answer(r)) })
		},
		Log: slog.Default(),
	})
}

// shownNetworks is what the dashboard tells of the networks.
func (s *service) shownNetworks(ctx context.Context) ([]dashboard.Network, error) {
	all, config := make([]dashboard.Network, 0, len(s.networks)), s.current.Load()
	for _, n := range s.networks {
		status, err := n.status(ctx)
		if err != nil {
			return nil, err
		}
		shown := dashboard.Network{
			Name: n.name, Family: status.Family, Chain: cmp.Or(status.Chain, strconv.FormatUint(status.ChainID, 10)),
			Hosts: config.hostsOf(n.name), Methods: triedMethods(n.methods),
			First: status.First, Head: status.Head, HeadHash: status.HeadHash, HeadTime: time.Unix(int64(status.HeadTime), 0),
			Settled: status.Settled, Disk: status.DiskBytes,
		}
		if source := status.Source; source != nil {
			shown.Follows, shown.Behind, shown.Problem = true, source.Behind, source.Problem
		}
		all = append(all, shown)
	}
	return all, nil
}

// triedMethods are the methods that the console offers: those that need no connection
// that stays open.
func triedMethods(methods *jsonrpc.Methods) []dashboard.Method {
	var tried []dashboard.Method
	for m := range methods.All() {
		if !m.Stream {
			tried = append(tried, dashboard.Method{Name: m.Name, Summary: m.Summary, Params: m.ExampleParams})
		}
	}
	return tried
}

// hostsOf lists the hosts at which a network is served without its name in the path.
func (c *Config) hostsOf(network string) []string {
	hosts := slices.Clone(c.Networks[network].Hosts)
	for _, pattern := range c.Hosts {
		hosts = append(hosts, strings.Replace(pattern, "*", network, 1))
	}
	return hosts
}
