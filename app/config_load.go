package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/evm/genesis"
	"ashlar/gateway"
	"ashlar/jsonrpc"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// LoadConfig reads ashlar.yaml over the defaults. Its errors name the file and the
// line, and what was expected there.
func LoadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return DefaultConfig(), fmt.Errorf("configuration: %w", err)
	}
	return parseConfig(path, text)
}

// parseConfig reads the text of the file path.
func parseConfig(path string, text []byte) (Config, error) {
	config := DefaultConfig()
	if err := checkShape(path, text); err != nil {
		return config, err
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return config, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil || parsed.Docs[0].Body.Type() == ast.NullType {
		return config, nil // what is empty would be read as zeros
	}
	if err := checkValues(path, "", parsed.Docs[0].Body, reflect.TypeFor[Config]()); err != nil {
		return config, err
	}
	if err := yaml.UnmarshalWithOptions(text, &config, yaml.Strict()); err != nil {
		return config, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	return config, checkRules(path, text, config.rules())
}

// rule is what must hold of an entry.
type rule struct {
	path  string
	check func() error
}

// checkRules says of every rule that does not hold where in the file that is.
func checkRules(path string, text []byte, rules []rule) error {
	var problems []error
	for _, rule := range rules {
		if err := rule.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place(path, text, rule.path), err))
		}
	}
	return errors.Join(problems...)
}

func (c *Config) rules() []rule {
	l, s := &c.Limits, &c.Sockets
	list := append(networkRules(c.Networks), []rule{
		{"$.listen", func() error { return checkAddress(c.Listen) }},
		{"$.operator", func() error {
			if c.Operator == "" {
				return nil
			}
			return checkAddress(c.Operator)
		}},
		{"$.origins", func() error { return each(c.Origins, checkOrigin) }},
		{"$.proxies", func() error { _, err := parseProxies(c.Proxies); return err }},
		{"$.tls", c.TLS.check},
		{"$.tls.acme.domains", func() error { return each(c.TLS.ACME.Domains, checkDomain) }},
		{"$.limits.time", func() error { return between(l.Time, time.Millisecond, gateway.MaxRequestTime) }},
		{"$.limits.address_rate", func() error { return notNegative(l.AddressRate) }},
		{"$.limits.key_rate", func() error { return notNegative(l.KeyRate) }},
		{"$.limits.account_rate", func() error { return notNegative(l.AccountRate) }},
		{"$.limits.address_fails", func() error { return notNegative(l.AddressFails) }},
		{"$.drain", func() error { return between(c.Drain, time.Millisecond, time.Hour) }},
		{"$.sockets.idle", func() error { return between(s.Idle, time.Second, 30*24*time.Hour) }},
		{"$.sockets.ping", func() error { return between(s.Ping, time.Second, time.Hour) }},
		{"$.filters.unread", func() error { return between(c.Filters.Unread, time.Second, time.Hour) }},
		{"$.credits", func() error { return checkCredits(c.Credits) }},
		{"$.accounts.registration", c.Accounts.Registration.Check},
	}...)
	for _, number := range []struct {
		path       string
		got, least int64
		unit       string
	}{
		{"$.cache", int64(c.Cache), 1 << 20, "bytes"},
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
		{"$.accounts.usage_days", int64(c.Accounts.UsageDays), 1, "days"},
		{"$.filters.each", int64(c.Filters.Each), 1, "filters"},
		{"$.filters.memory", int64(c.Filters.Memory), 1 << 20, "bytes"},
	} {
		list = append(list, rule{number.path, func() error { return atLeast(number.got, number.least, number.unit) }})
	}
	return list
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
		return fmt.Errorf("%v is no rate: expected 0 or more", got)
	}
	return nil
}

// networkRules are what must hold of the networks: their names before all else, as
// they are part of the other entries' paths.
func networkRules(networks map[string]NetworkConfig) []rule {
	names := slices.Sorted(maps.Keys(networks))
	list := []rule{{"$.networks", func() error { return each(names, gateway.CheckNetworkName) }}}
	for _, name := range names {
		config, path := networks[name], "$.networks."+name
		list = append(list,
			rule{path + ".hosts", func() error { return each(config.Hosts, gateway.CheckHost) }},
			rule{path + ".source", func() error { return config.Source.check(config.Family) }},
			rule{path, config.check})
	}
	return list
}

// each says what is wrong with any of some words.
func each(words []string, check func(string) error) error {
	problems := make([]error, len(words))
	for i, word := range words {
		problems[i] = check(word)
	}
	return errors.Join(problems...)
}

// networksAtStart are the networks' entries that count from the next start on.
func (c *Config) networksAtStart() map[string]NetworkConfig {
	all := maps.Clone(c.Networks)
	for name, network := range all {
		network.Hosts, network.Behind = nil, 0
		all[name] = network
	}
	return all
}

// check says what is wrong with a network's entries.
func (n *NetworkConfig) check() error {
	switch {
	case n.Family != "" && n.Family != familyEVM && n.Family != familyStarknet:
		return fmt.Errorf("%q is no family: expected %s or %s", n.Family, familyEVM, familyStarknet)
	case n.Family != familyStarknet && (n.Chain != "" || n.First != 0):
		return errors.New("chain and first are for networks with family: starknet")
	case n.Family == familyStarknet && n.Genesis != "":
		return errors.New("a Starknet network has no genesis file: its first block may be any")
	case n.Family == familyStarknet && n.Engine != (EngineConfig{}):
		return errors.New("engine is for EVM networks")
	case n.Pool != "" && (n.Family == familyStarknet || len(n.Source) == 0):
		return errors.New("pool is for EVM networks with a source")
	case !slices.Contains([]string{"", poolAll, poolSent, poolNone}, n.Pool):
		return fmt.Errorf("%q is no pool: expected %s, %s or %s", n.Pool, poolAll, poolSent, poolNone)
	case n.Behind < 0:
		return fmt.Errorf("behind is %v: expected 0 or more", n.Behind)
	}
	return n.Engine.check()
}

func parseProxies(list []string) (all []netip.Prefix, err error) {
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no network: expected one such as 10.0.0.0/8 or 192.0.2.1/32", text)
		}
		all = append(all, prefix)
	}
	return all, nil
}

func (t *TLSConfig) check() error {
	switch files := t.Certificate != "" || t.Key != ""; {
	case files && (t.Certificate == "" || t.Key == ""):
		return errors.New("only one of certificate and key is given: expected both, or neither")
	case files && len(t.ACME.Domains) > 0:
		return errors.New("both files and acme are given: expected one of them")
	case len(t.ACME.Domains) == 0 && (t.ACME.Email != "" || t.ACME.Directory != ""):
		return errors.New("acme has no domains: expected those that certificates are for")
	}
	return nil
}

// place names the line of an entry, as "file:line: entry".
func place(file string, text []byte, entry string) string {
	path, err := yaml.PathString(entry)
	if err != nil {
		return file
	}
	if annotated, err := path.AnnotateSource(text, false); err == nil {
		for line := range bytes.Lines(annotated) {
			var number int
			if _, err := fmt.Sscanf(string(line), "> %d", &number); err == nil {
				return fmt.Sprintf("%s:%d: %s", file, number, entry[2:])
			}
		}
	}
	return fmt.Sprintf("%s: %s", file, entry[2:])
}

// checkAddress says what is wrong with the address of a listener.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is no address: expected one such as 127.0.0.1:8545", address)
	}
	return nil
}

// checkOrigin says what is wrong with an origin, which is compared with what browsers send.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if origin == gateway.AnyOrigin || err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == origin {
		return nil
	}
	return fmt.Errorf("%q is no origin: expected one such as https://app.example.org, or *", origin)
}

// checkDomain says what is wrong with a name to get a certificate for.
func checkDomain(name string) error {
	if strings.Contains(name, "*") {
		return fmt.Errorf("%q is a pattern, for which TLS-ALPN gets no certificate: expected each name by itself", name)
	}
	return gateway.CheckHost(name)
}

// Bytes is a number of bytes, written plainly or with a unit: 512KiB, 64MiB, 2GiB.
type Bytes int64

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (b *Bytes) UnmarshalYAML(text []byte) (err error) {
	*b, err = parseBytes(strings.TrimSpace(string(text)))
	return err
}

// expectedBytes is how a size is written.
const expectedBytes = "a number of bytes, such as 1048576, 512KiB, 64MiB or 2GiB"

func parseBytes(text string) (Bytes, error) {
	var number int64
	var unit string
	n, _ := fmt.Sscanf(text, "%d%s", &number, &unit)
	size, ok := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
	if n == 0 || !ok || number < 0 || number > (1<<62)/size {
		return 0, fmt.Errorf("%q is no size: expected %s", text, expectedBytes)
	}
	return Bytes(number * size), nil
}

// String is b as it is written in the configuration.
func (b Bytes) String() string {
	for _, unit := range []struct {
		size Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b > 0 && b%unit.size == 0 {
			return fmt.Sprint(int64(b/unit.size), unit.name)
		}
	}
	return fmt.Sprint(int64(b))
}

// CheckConfig says what is wrong with ashlar.yaml, as far as can be told without
// opening the data directory: its entries, its files, and how they fit together.
func CheckConfig(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	config, err := parseConfig(path, text)
	if err != nil {
		return err
	}
	if err := checkRules(path, text, config.fileRules()); err != nil {
		return err
	}
	s := &service{config: config, metrics: newMetrics(), people: people{keys: new(account.Keyring)}, dashboard: http.NotFoundHandler()}
	for name := range config.Networks {
		s.networks = append(s.networks, &network{name: name, methods: new(jsonrpc.Methods), family: new(evmNetwork)})
	}
	g, err := s.gatewayConfig(config)
	if err == nil {
		_, err = gateway.New(g)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// fileRules are what must hold of the files that the configuration names. A server
// reads them at its start.
func (c *Config) fileRules() []rule {
	list := []rule{{"$.tls", func() error {
		if c.TLS.Certificate == "" {
			return nil
		}
		_, err := c.TLS.open(context.Background(), c.Data)
		return err
	}}}
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		if first := c.Networks[name].Genesis; first != "" {
			list = append(list, rule{"$.networks." + name + ".genesis", func() error { _, err := genesis.Load(first); return err }})
		}
	}
	return list
}
