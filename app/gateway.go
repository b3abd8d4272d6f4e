package app

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"ashlar/app/config"
	"ashlar/app/watch"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/kv"
)

// gatewayConfig returns the gateway's configuration. Once the service serves, s.adding must be held.
func (s *Service) gatewayConfig(c config.Config) (gateway.Config, error) {
	proxies, err := c.ParsedProxies()
	if err != nil {
		return gateway.Config{}, err
	}
	g := gateway.Config{
		Hosts: c.Hosts, Keys: s.keys, Usage: s.usage, Failures: s.failures, Group: s.group, Origins: c.Origins, Proxies: proxies, Credits: func(m *jsonrpc.Method) int { return credits(&c, m) }, Log: slog.Default(),
		RPC: jsonrpc.Config{
			BatchCalls: c.Limits.BatchCalls, BatchBytes: int(c.Limits.BatchBytes), AnswerBytes: int(c.Limits.AnswerBytes), Log: slog.Default(),
		},
		Limits: gateway.Limits{
			BodyBytes: int(c.Limits.Body), RequestTime: c.Limits.Time,
			Key:      gateway.KeyLimits{Rate: gateway.PerSecond(c.Limits.KeyRate), PerDay: c.Limits.KeyDaily},
			Account:  gateway.KeyLimits{Rate: gateway.PerSecond(c.Limits.AccountRate), PerDay: c.Limits.AccountDaily},
			Address:  gateway.PerSecond(c.Limits.AddressRate),
			Failures: gateway.PerSecond(c.Limits.AddressFails),
			Light:    c.Limits.LightCalls, Heavy: c.Limits.HeavyCalls, Waiting: c.Limits.WaitingCalls,
			Memory: int64(c.Limits.Memory), See: c.Limits.See,
		},
		Sockets: gateway.SocketLimits{
			Open: c.Sockets.Open, Each: c.Sockets.Each, InFlight: c.Sockets.InFlight, Streams: c.Sockets.Streams,
			Queue: c.Sockets.Queue, QueueBytes: int(c.Sockets.QueueBytes), Idle: c.Sockets.Idle, Ping: c.Sockets.Ping,
		},
		Ready:   s.readyCheck(c),
		Watcher: s.watcher(&c),

		Unavailable: func(err error) bool { return errors.Is(err, kv.ErrUnavailable) },
		Pages:       gateway.Pages{Hosts: c.Dashboard.Hosts, Handler: s.dashboard},
	}
	g.Absent = s.absent(&c)
	for _, n := range s.Networks() {
		g.Networks = append(g.Networks, gateway.Network{
			Name: n.Name, Hosts: c.Networks[n.Name].Hosts, Methods: n.methods, Versions: n.versions, Restricted: c.Networks[n.Name].Restricted, OpenRPC: n.openRPC.JSON,
			Observer: s.metrics.observer(n.Name, n.methods.Names()), Users: &n.users,
		})
	}
	return g, nil
}

// absent returns the networks that are not served, with their own hosts: those that the configuration lists,
// that are left out, or that were served before. s.adding must be held.
func (s *Service) absent(c *config.Config) map[string][]string {
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	for _, n := range s.Networks() {
		s.known[n.Name] = true
	}
	for _, u := range s.leftOut.all() {
		s.known[u.Name] = true
	}
	for name := range c.Networks {
		s.known[name] = true
	}
	absent := make(map[string][]string)
	for name := range s.known {
		absent[name] = c.Networks[name].Hosts
	}
	for _, n := range s.Networks() {
		delete(absent, n.Name)
	}
	return absent
}

// watcher returns the watcher of requests, or nil if they are neither logged nor traced.
func (s *Service) watcher(c *config.Config) gateway.Watcher {
	var log, traces gateway.Watcher
	if c.Log.Requests || c.Log.Slow > 0 {
		log = watch.Log(slog.Default(), c.Log.Requests, c.Log.Slow)
	}
	if s.tracer != nil {
		traces = s.tracer.Watch
	}
	return watch.Join(log, traces)
}

const (
	filesOfStore = 1000 // that a store may have open, see kv/pebble
	otherFiles   = 250  // connections to nodes, those of operators, and the like
)

// connectionsWithin returns how many connections to accept, of so many that are configured. Each is one of the
// files that the process may have open. Half of these, or what the stores can use if that is less, is left to
// others: a store that cannot open its files can neither be read nor written. files 0 is no limit.
func connectionsWithin(ctx context.Context, files uint64, configured, stores int) int {
	others := min(files/2, uint64(stores)*filesOfStore+otherFiles)
	if files == 0 || uint64(configured) <= files-others {
		return configured
	}
	fit := int(files - others)
	level := slog.LevelWarn
	if configured == gateway.DefaultConnections { // perhaps nobody chose it
		level = slog.LevelInfo
	}
	slog.Log(ctx, level, "accepting fewer connections than configured: the limit of open files of the process is too low for more",
		"connections", fit, "configured", configured, "open_files", files)
	return fit
}

// listenConfig returns the public listener's configuration.
func (s *Service) listenConfig(ctx context.Context, c *config.Config) (l gateway.ListenConfig, err error) {
	l = gateway.ListenConfig{
		Address: c.Listen, Drain: c.Drain,
		Connections: connectionsWithin(ctx, openFiles(), c.Limits.Connections, len(s.Networks())+1), ConnectionsEach: c.Limits.ConnectionsEach,
	}
	l.TLS, err = c.TLS.Open(ctx, c.Data)
	return l, err
}

// Reload applies those changes of a configuration that do not need a restart.
func (s *Service) Reload(c config.Config) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	g, err := s.gatewayConfig(c)
	if err != nil {
		return err
	}
	if err := s.handler.Reload(g); err != nil {
		return err
	}
	warnOfCredits(&c, g.Networks)
	s.accounts.Reload(c.Accounts.Service())
	s.current.Store(&c)
	before, now := s.config, c
	for _, kept := range []struct {
		entry       string
		before, now any
	}{
		{"data", before.Data, now.Data}, {"store", before.Store, now.Store}, {"role", before.Role, now.Role}, {"listen", before.Listen, now.Listen}, {"operator", before.Operator, now.Operator},
		{"cache", before.Cache, now.Cache}, {"drain", before.Drain, now.Drain}, {"tls", before.TLS, now.TLS},
		{"filters", before.Filters, now.Filters},
		{"traces", before.Traces, now.Traces},
		{"accounts.mail", before.Accounts.Mail, now.Accounts.Mail},
		{"accounts.oidc", before.Accounts.OIDC, now.Accounts.OIDC},
		{"accounts.usage_days", before.Accounts.UsageDays, now.Accounts.UsageDays},
		{"limits.address_fails", before.Limits.AddressFails, now.Limits.AddressFails},
		{"limits.connections", before.Limits.Connections, now.Limits.Connections},
		{"networks", before.NetworksAtStart(), now.NetworksAtStart()},
		{"limits.connections_each", before.Limits.ConnectionsEach, now.Limits.ConnectionsEach},
	} {
		if !reflect.DeepEqual(kept.before, kept.now) {
			slog.Warn("a changed configuration entry requires a restart", "entry", kept.entry)
		}
	}
	for name := range c.Networks {
		if s.Network(name) == nil {
			slog.Warn("a network of the configuration is not served: add it with `ashlar network add`, or restart the server", "network", name)
		}
	}
	slog.Info("configuration reloaded")
	return nil
}
