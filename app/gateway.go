package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"ashlar/gateway"
	"ashlar/gateway/certificate"
	"ashlar/jsonrpc"
)

// gatewayConfig is what the gateway is to do by a configuration.
func (s *service) gatewayConfig(c Config) (gateway.Config, error) {
	proxies, err := parseProxies(c.Proxies)
	if err != nil {
		return gateway.Config{}, err
	}
	g := gateway.Config{
		Hosts: c.Hosts, Keys: s.keys, Usage: s.usage, Origins: c.Origins, Proxies: proxies, Credits: c.credits, Log: slog.Default(),
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
		Ready: func(ctx context.Context) error { return s.ready(ctx, c) },
		Pages: gateway.Pages{Hosts: c.Dashboard.Hosts, Handler: s.dashboard},
	}
	for _, n := range s.networks {
		g.Networks = append(g.Networks, gateway.Network{
			Name: n.name, Hosts: c.Networks[n.name].Hosts, Methods: n.methods, OpenRPC: n.openRPC.JSON,
			Observer: s.metrics.observer(n.name, n.methods.Names()),
		})
	}
	return g, nil
}

// listenConfig is where and how the public listener listens.
func (c *Config) listenConfig(ctx context.Context) (l gateway.ListenConfig, err error) {
	l = gateway.ListenConfig{
		Address: c.Listen, Drain: c.Drain,
		Connections: c.Limits.Connections, ConnectionsEach: c.Limits.ConnectionsEach,
	}
	if l.Proxies, err = parseProxies(c.Proxies); err != nil {
		return l, err
	}
	l.TLS, err = c.TLS.open(ctx, c.Data)
	return l, err
}

// open returns how connections are encrypted, nil where they are not.
func (t *TLSConfig) open(ctx context.Context, data string) (*tls.Config, error) {
	switch {
	case t.Certificate != "":
		return certificate.FromFiles(t.Certificate, t.Key, slog.Default())
	case len(t.ACME.Domains) > 0:
		return certificate.FromACME(ctx, certificate.ACME{
			Domains: t.ACME.Domains, Email: t.ACME.Email, Directory: t.ACME.Directory, Folder: filepath.Join(data, "certificates"),
		}, slog.Default())
	}
	return nil, nil
}

// ready is why the service should not be asked: a network that cannot be read, or
// whose newest block is older than it should be.
func (s *service) ready(ctx context.Context, c Config) error {
	for _, n := range s.networks {
		status, err := n.status(ctx)
		if err != nil {
			return fmt.Errorf("network %s: %w", n.name, err)
		}
		age := time.Since(time.Unix(int64(status.HeadTime), 0)).Round(time.Second)
		if most := c.Networks[n.name].Behind; most > 0 && age > most {
			return fmt.Errorf("network %s is behind: its newest block %d is %v old, expected at most %v", n.name, status.Head, age, most)
		}
	}
	return nil
}

// reload makes what can be changed while serving as a configuration has it.
func (s *service) reload(c Config) error {
	for name := range c.Networks {
		if !slices.ContainsFunc(s.networks, func(n *network) bool { return n.name == name }) {
			return fmt.Errorf("network %s is not served: another set of networks takes a restart", name)
		}
	}
	g, err := s.gatewayConfig(c)
	if err != nil {
		return err
	}
	if err := s.handler.Reload(g); err != nil {
		return err
	}
	c.warnOfCredits(g.Networks)
	s.accounts.Reload(c.Accounts.config())
	s.current.Store(&c)
	before, now := s.config, c
	for _, kept := range []struct {
		entry       string
		before, now any
	}{
		{"data", before.Data, now.Data}, {"listen", before.Listen, now.Listen}, {"operator", before.Operator, now.Operator},
		{"cache", before.Cache, now.Cache}, {"drain", before.Drain, now.Drain}, {"tls", before.TLS, now.TLS},
		{"filters", before.Filters, now.Filters},
		{"accounts.usage_days", before.Accounts.UsageDays, now.Accounts.UsageDays},
		{"limits.address_fails", before.Limits.AddressFails, now.Limits.AddressFails},
		{"limits.connections", before.Limits.Connections, now.Limits.Connections},
		{"networks", before.networksAtStart(), now.networksAtStart()},
		{"limits.connections_each", before.Limits.ConnectionsEach, now.Limits.ConnectionsEach},
	} {
		if !reflect.DeepEqual(kept.before, kept.now) {
			slog.Warn("an entry of the configuration has changed that counts from the next start on", "entry", kept.entry)
		}
	}
	slog.Info("configuration reloaded")
	return nil
}
