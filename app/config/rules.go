package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/gateway"
)

func (c *Config) rules(families family.Families) []rule {
	l, s := &c.Limits, &c.Sockets
	list := append(c.networkRules(families), []rule{
		{"$.listen", func() error { return CheckAddress(c.Listen) }},
		{"$.store.cassandra.hosts", c.Store.Cassandra.CheckHosts},
		{"$.store.cassandra.port", c.Store.Cassandra.CheckPort},
		{"$.store.cassandra.keyspace", c.Store.Cassandra.CheckKeyspace},
		{"$.store.cassandra.consistency", c.Store.Cassandra.CheckConsistency},
		{"$.store.cassandra.tls", c.Store.Cassandra.TLS.CheckTLS},
		{"$.role", c.checkRole},
		{"$.operator", func() error {
			if c.Operator == "" {
				return nil
			}
			return CheckAddress(c.Operator)
		}},
		{"$.hosts", func() error { return each(c.Hosts, gateway.CheckPattern) }},
		{"$.dashboard.hosts", func() error { return each(c.Dashboard.Hosts, gateway.CheckPagesHost) }},
		{"$.dashboard.url", c.Dashboard.checkURL},
		{"$.origins", func() error { return each(c.Origins, checkOrigin) }},
		{"$.proxies", func() error { _, err := c.ParsedProxies(); return err }},
		{"$.tls", c.TLS.check},
		{"$.tls.acme.domains", func() error { return each(c.TLS.ACME.Domains, checkDomain) }},
		{"$.limits.time", func() error { return between(l.Time, time.Millisecond, gateway.MaxRequestTime) }},
		{"$.limits.address_rate", func() error { return notNegative(l.AddressRate) }},
		{"$.limits.key_rate", func() error { return notNegative(l.KeyRate) }},
		{"$.limits.account_rate", func() error { return notNegative(l.AccountRate) }},
		{"$.limits.address_fails", func() error { return notNegative(l.AddressFails) }},
		{"$.lame_duck", func() error { return between(c.LameDuck, 0, time.Hour) }},
		{"$.drain", func() error { return between(c.Drain, time.Millisecond, time.Hour) }},
		{"$.sockets.idle", func() error { return between(s.Idle, time.Second, 30*24*time.Hour) }},
		{"$.sockets.ping", func() error { return between(s.Ping, time.Second, time.Hour) }},
		{"$.filters.unread", func() error { return between(c.Filters.Unread, time.Second, time.Hour) }},
		{"$.log.slow", func() error { return between(c.Log.Slow, 0, gateway.MaxRequestTime) }},
		{"$.traces.endpoint", func() error { return checkEndpoint(c.Traces.Endpoint) }},
		{"$.traces.share", func() error { return checkShare(c.Traces.Share) }},
		{"$.credits", func() error { return c.checkCredits(families) }},
		{"$.accounts.registration", c.Accounts.Registration.Check},
		{"$.accounts.mail", c.checkMail},
		{"$.accounts.oidc", c.Accounts.OIDC.check},
	}...)
	for _, number := range []struct {
		path       string
		got, least int64
		unit       string
	}{
		{"$.cache", int64(c.Cache), 1 << 20, "bytes"},
		{"$.store.cache.size", int64(c.Store.Cache.Size), store.LeastRowCache, "bytes"},
		{"$.store.cassandra.replication", int64(c.Store.Cassandra.Replication), 1, "replicas"},
		{"$.limits.body", int64(l.Body), 1024, "bytes"},
		{"$.limits.batch_calls", int64(l.BatchCalls), 1, "calls"},
		{"$.limits.batch_bytes", int64(l.BatchBytes), 1024, "bytes"},
		{"$.limits.answer_bytes", int64(l.AnswerBytes), 1024, "bytes"},
		{"$.limits.light_calls", int64(l.LightCalls), 0, "calls"},
		{"$.limits.heavy_calls", int64(l.HeavyCalls), 0, "calls"},
		{"$.limits.waiting_calls", int64(l.WaitingCalls), 1, "calls"},
		{"$.limits.memory", int64(l.Memory), 2 * int64(l.Body), "bytes"},
		{"$.limits.connections", int64(l.Connections), 1, "connections"},
		{"$.limits.connections_each", int64(l.ConnectionsEach), 0, "connections"},
		{"$.sockets.open", int64(s.Open), 1, "connections"},
		{"$.sockets.each", int64(s.Each), 1, "connections"},
		{"$.sockets.in_flight", int64(s.InFlight), 1, "messages"},
		{"$.sockets.streams", int64(s.Streams), 1, "subscriptions"},
		{"$.sockets.queue", int64(s.Queue), 1, "messages"},
		{"$.sockets.queue_bytes", int64(s.QueueBytes), 1024, "bytes"},
		{"$.accounts.keys", int64(c.Accounts.Keys), 1, "keys"},
		{"$.accounts.teams", int64(c.Accounts.Teams), 0, "teams"},
		{"$.accounts.usage_days", int64(c.Accounts.UsageDays), 1, "days"},
		{"$.filters.each", int64(c.Filters.Each), 1, "filters"},
		{"$.filters.memory", int64(c.Filters.Memory), 1 << 20, "bytes"},
	} {
		list = append(list, rule{number.path, func() error { return atLeast(number.got, number.least, number.unit) }})
	}
	return list
}

func (c *Config) checkRole() error {
	switch {
	case c.Role != Writer && c.Role != Reader && c.Role != Standby:
		return fmt.Errorf("unknown role %q (want %s, %s or %s)", c.Role, Writer, Reader, Standby)
	case c.Role != Writer && !c.Store.Cassandra.Used():
		return fmt.Errorf("role %s without store.cassandra (want hosts there, or the role %s)", c.Role, Writer)
	}
	return nil
}

func atLeast(got, least int64, unit string) error {
	if got < least {
		return fmt.Errorf("%d %s is too little: expected at least %d", got, unit, least)
	}
	return nil
}

func between(got, least, most time.Duration) error {
	if got < least || got > most {
		return fmt.Errorf("%v is out of range: expected from %v to %v", got, least, most)
	}
	return nil
}

func notNegative(got float64) error {
	if !(got >= 0) { // NaN is refused too
		return fmt.Errorf("%v is negative: expected 0 or more", got)
	}
	return nil
}

// each returns what is wrong with any of the words.
func each(words []string, check func(string) error) error {
	problems := make([]error, len(words))
	for i, word := range words {
		problems[i] = check(word)
	}
	return errors.Join(problems...)
}

// CheckAddress checks the address of a listener.
func CheckAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("invalid address %q (want one such as 127.0.0.1:8545)", address)
	}
	return nil
}

// checkOrigin checks an origin, which is compared with what browsers send.
func checkOrigin(origin string) error {
	if origin == gateway.AnyOrigin {
		return nil
	}
	if err := account.CheckOrigin(origin); err != nil {
		return fmt.Errorf("%w, or %s alone for all", err, gateway.AnyOrigin)
	}
	return nil
}

// checkEndpoint checks the URL of an OTLP collector; empty means none.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return fmt.Errorf("invalid URL %q (want one such as http://127.0.0.1:4318/v1/traces)", endpoint)
}

func checkShare(share float64) error {
	if share >= 0 && share <= 1 {
		return nil
	}
	return fmt.Errorf("%v is out of range: expected from 0 to 1", share)
}

// checkDomain checks a name to get a certificate for.
func checkDomain(name string) error {
	if strings.Contains(name, "*") {
		return fmt.Errorf("%q is a pattern, and ACME with TLS-ALPN issues no certificates for patterns: expected each name by itself", name)
	}
	return gateway.CheckHost(name)
}

// ParsedProxies are the networks of reverse proxies that are trusted.
func (c *Config) ParsedProxies() (all []netip.Prefix, err error) {
	for _, text := range c.Proxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("invalid network %q (want one such as 10.0.0.0/8 or 192.0.2.1/32)", text)
		}
		all = append(all, prefix)
	}
	return all, nil
}

// OtherCredits is the entry of credits for all methods that cost the usual number.
const OtherCredits = "other"

// checkCredits checks the prices of methods, and that there are such methods.
func (c *Config) checkCredits(families family.Families) error {
	if len(c.Credits) == 0 {
		return nil
	}
	known, err := c.methods(families)
	if err != nil {
		return err
	}
	var problems []error
	for _, method := range slices.Sorted(maps.Keys(c.Credits)) {
		if n := c.Credits[method]; n < 0 || n > 1_000_000 {
			problems = append(problems, fmt.Errorf("%s costs %d credits: expected from 0 to 1000000", method, n))
		}
		if method != OtherCredits && !slices.Contains(known, method) {
			problems = append(problems, fmt.Errorf("unknown method %q (want one of docs/methods.md, or %s)", method, OtherCredits))
		}
	}
	return errors.Join(problems...)
}
