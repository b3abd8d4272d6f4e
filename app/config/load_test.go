package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ashlar.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, families())
}

func TestConfigIsReadOverTheDefaults(t *testing.T) {
	config, err := loadText(t, `
data: /var/lib/ashlar
cache: 512MiB
networks:
  mainnet:
    hosts: [mainnet.example.org]
  sepolia: {}
limits:
  body: 1048576
  time: 10s
`)
	if err != nil {
		t.Fatal(err)
	}
	if config.Data != "/var/lib/ashlar" || config.Cache != 512<<20 || config.Limits.Body != 1<<20 || config.Limits.Time != 10*time.Second {
		t.Errorf("read %+v", config)
	}
	if hosts := config.Networks["mainnet"].Hosts; len(hosts) != 1 || hosts[0] != "mainnet.example.org" {
		t.Errorf("mainnet's hosts are %v", hosts)
	}
	if len(config.Networks) != 2 {
		t.Errorf("%d networks, expected 2", len(config.Networks))
	}
	if want := Default(); config.Listen != want.Listen || config.Limits.BatchCalls != want.Limits.BatchCalls {
		t.Errorf("the defaults are lost: %+v", config)
	}
}

// A wrong entry is refused with the file, the line, and what was expected.
func TestConfigErrorsNameThePlace(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"unknown entry", "data: x\nlissten: y\n", []string{"ashlar.yaml:2: lissten: unknown entry; did you mean listen?"}},
		{"unknown nested entry", "limits:\n  bodies: 1\n", []string{"ashlar.yaml:2: limits.bodies: unknown entry; `ashlar config example` prints all entries"}},
		{"wrong kind", "limits:\n  batch_calls: many\n", []string{"ashlar.yaml:2: limits.batch_calls", `"many"`, "expected a whole number"}},
		{"no size", "data: x\ncache: much\n", []string{"ashlar.yaml:2: cache", `"much"`, "64MiB"}},
		{"a negative size", "limits: {body: -5}\n", []string{"ashlar.yaml:1: limits.body", `"-5"`, "64MiB"}},
		{"part of a number", "limits:\n  batch_calls: 1.9\n", []string{"ashlar.yaml:2: limits.batch_calls", `"1.9"`, "expected a whole number"}},
		{"part of a credit", "credits:\n  eth_call: 1.5\n", []string{"ashlar.yaml:2: credits.eth_call", `"1.5"`, "expected a whole number"}},
		{"a negative limit", "limits:\n  key_daily: -1\n", []string{"ashlar.yaml:2: limits.key_daily", "0 or more"}},
		{"no unit of time", "drain: 20\n", []string{"ashlar.yaml:1: drain", `"20"`, "expected a time such as 500ms, 10s"}},
		{"no rate", "limits:\n  key_rate: fast\n", []string{"ashlar.yaml:2: limits.key_rate", "expected a number"}},
		{"no truth", "log:\n  requests: maybe\n", []string{"ashlar.yaml:2: log.requests", `"maybe"`, "expected true or false"}},
		{"no truth in a family's entry", "networks:\n  a: {trace_index: maybe}\n", []string{"ashlar.yaml:2: networks.a.trace_index", `"maybe"`, "expected true or false"}},
		{"a number in place of entries", "data: x\nlimits: 5\n", []string{"ashlar.yaml:2: limits", `"5"`, "expected entries below it"}},
		{"a number in place of a family's entries", "networks:\n  a:\n    retention: 5\n", []string{"ashlar.yaml:3: networks.a.retention", "expected entries below it"}},
		{"a word in place of a list", "networks:\n  a:\n    hosts: foo\n", []string{"ashlar.yaml:3: networks.a.hosts", `"foo"`, "expected a list, such as [a, b]"}},
		{"a list in place of a word", "listen: x:1\ndata:\n  - 1\n", []string{"ashlar.yaml:3: data: ", "expected one value"}},
		{"a list in place of entries", "networks:\n- a\n", []string{"ashlar.yaml:2: networks: ", "expected entries below it"}},
		{"entries in place of a word", "data:\n  dir: x\n", []string{"ashlar.yaml:2: data: ", "expected one value"}},
		{"a host with a port that is read as an entry", "store:\n  cassandra: {hosts: [localhost:9042]}\n", []string{"ashlar.yaml:2: store.cassandra.hosts: expected one value, not entries (a text with a colon needs quotes)"}},
		{"a keyspace without hosts", "data: x\nstore:\n  cassandra: {keyspace: ashlar2}\n", []string{"ashlar.yaml:3: store.cassandra.hosts: no hosts, but other entries"}},
		{"an address that is read as an entry", "store:\n  cassandra: {hosts: [10.0.0.1:9042]}\n", []string{`ashlar.yaml:2: 10.0.0.1:9042 has a colon: expected quotes`, `["10.0.0.1:9042"]`}},
		{"a URL that is read as an entry", "networks:\n  a: {source: [ws://10.0.0.5:8546]}\n", []string{`ashlar.yaml:2: ws://... has a colon: expected quotes`, `["ws://..."]`}},
		{"a URL that is read as an entry of a node", "networks:\n  a: {upstream: ['http://b:1', http://10.0.0.5:8546]}\n", []string{`ashlar.yaml:2: http://... has a colon: expected quotes`}},
		{"a URL with a key that is read as an entry", "networks:\n  a: {source: [https://user:secret@h.test:8545/v3/secret]}\n", []string{`ashlar.yaml:2: https://... has a colon`}},
		{"a URL with a key and without a scheme", "networks:\n  a: {source: [h.test:8545/v3/secret]}\n", []string{`ashlar.yaml:2: h.test:8545/... has a colon`}},
		{"a node without a scheme", "networks:\n  a: {source: '10.0.0.1:8545'}\n", []string{"ashlar.yaml:2: networks.a.source: number 1 of 1: the URL of a node has no scheme", "http://192.0.2.1:8545"}},
		{"a node twice", "networks:\n  a: {source: [http://a, http://b, http://a], quorum: 2}\n", []string{"ashlar.yaml:2: networks.a.source: number 3 of 3: the URL of number 1 again"}},
		{"a node twice, written in two ways", "networks:\n  a: {source: [http://a/, http://b, 'http://A:80'], quorum: 2}\n", []string{"ashlar.yaml:2: networks.a.source: number 3 of 3: the URL of number 1 again"}},
		{"an upstream node twice, written in two ways", "networks:\n  a: {upstream: ['https://a/', 'https://a:443'], quorum: 2}\n", []string{"ashlar.yaml:2: networks.a.upstream: number 2 of 2: the node of number 1 again"}},
		{"an upstream node twice", "networks:\n  a: {upstream: [http://a, {url: http://a, rate: 2}], quorum: 2}\n", []string{"ashlar.yaml:2: networks.a.upstream: number 2 of 2: the node of number 1 again"}},
		{"a rate of a node", "networks:\n  a:\n    upstream: {url: 'http://h', rate: x}\n", []string{"ashlar.yaml:3: networks.a.upstream.rate", `"x"`, "expected a number"}},
		{"a rate of one of two nodes", "networks:\n  a:\n    upstream: ['http://h', {url: 'http://i', rate: x}]\n", []string{"ashlar.yaml:3: networks.a.upstream.rate", `"x"`, "expected a number"}},
		{"a restricted method that is unknown", "networks:\n  a:\n    restricted: [debug_*, debug_traceCal]\n", []string{"ashlar.yaml:3: networks.a.restricted", `unknown method "debug_traceCal"`}},
		{"restricted methods that are unknown", "networks:\n  a: {restricted: ['debgu_*']}\n", []string{"ashlar.yaml:2: networks.a.restricted", `unknown method "debgu_*"`}},
		{"several problems", "drain: 20\ncache: -1\n", []string{"ashlar.yaml:1: drain", "ashlar.yaml:2: cache"}},
		{"several rules", "listen: foo\norigins: [a]\n", []string{"ashlar.yaml:1: listen", "ashlar.yaml:2: origins"}},
		{"no address", "listen: foo\n", []string{"ashlar.yaml:1: listen", `invalid address "foo"`}},
		{"no port", "listen: 127.0.0.1:99999\n", []string{"ashlar.yaml:1: listen", "invalid address"}},
		{"operator's address", "data: x\noperator: foo\n", []string{"ashlar.yaml:2: operator", `invalid address "foo"`}},
		{"origin with a slash", "origins: [https://app.example.org/]\n", []string{"ashlar.yaml:1: origins", "want https://app.example.org)"}},
		{"origin without a scheme", "origins: [\"app.example.org\"]\n", []string{"ashlar.yaml:1: origins", `invalid origin "app.example.org"`, "https://app.example.org"}},
		{"impossible port", "networks:\n  a: {source: 'http://h:99999'}\n", []string{"ashlar.yaml:2: networks.a.source", "port 99999", "65535"}},
		{"wildcard by ACME", "tls:\n  acme:\n    domains: [\"*.a.org\"]\n", []string{"ashlar.yaml:3: tls.acme.domains", `"*.a.org"`, "each name by itself"}},
		{"two documents", "data: x\n---\nlisten: foo\n", []string{"ashlar.yaml:2: ", "second document"}},
		{"two documents, one ended", "---\ndata: x\n...\nlisten: foo\n", []string{"ashlar.yaml:4: ", "second document"}},
		{"too small", "data: x\nlimits:\n  time: 5s\n  body: 10\n", []string{"ashlar.yaml:4:", "limits.body", "expected at least 1024"}},
		{"network's name", "data: x\nnetworks:\n  Main_Net: {}\n", []string{"networks", `"Main_Net"`, "lower-case letters"}},
		{"reserved name", "networks:\n  ws: {}\n", []string{"ashlar.yaml:2:", `invalid network name "ws"`, "none of v3, ws"}},
		{"no host", "networks:\n  main-net:\n    hosts: [EA.test]\n", []string{"ashlar.yaml:3: networks.main-net.hosts", `invalid host "EA.test"`, "lower-case name"}},
		{"a pattern without a star", "data: x\nhosts: [example.org]\n", []string{"ashlar.yaml:2: hosts: invalid pattern of hosts", "*.example.org"}},
		{"a host of the dashboard with a port", "data: x\ndashboard:\n  hosts: ['a.test:443']\n", []string{"ashlar.yaml:3: dashboard.hosts: invalid host of pages", "without scheme and port"}},
		{"no URL of the dashboard", "dashboard:\n  hosts: [a.test]\n  url: a.test\n", []string{`ashlar.yaml:3: dashboard.url: invalid URL "a.test"`, "such as https://dash.example.org"}},
		{"a URL of the dashboard with a path", "dashboard:\n  hosts: [a.test]\n  url: https://a.test/dash\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL of the dashboard with an empty query", "dashboard:\n  hosts: [a.test]\n  url: https://a.test?\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL of the dashboard with an empty fragment", "dashboard:\n  hosts: [a.test]\n  url: 'https://a.test#'\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL of the dashboard with two slashes", "dashboard:\n  hosts: [a.test]\n  url: https://a.test//\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL of the dashboard without its port", "dashboard:\n  hosts: [a.test]\n  url: 'https://a.test:'\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL of the dashboard with no port", "dashboard:\n  hosts: [a.test]\n  url: https://a.test:99999\n", []string{"ashlar.yaml:3: dashboard.url: invalid URL"}},
		{"a URL where the dashboard is not shown", "dashboard:\n  hosts: [a.test]\n  url: https://b.test\n", []string{`ashlar.yaml:3: dashboard.url: the dashboard is not shown at b.test (want a host of dashboard.hosts, there are ["a.test"])`}},
		{"no pool", "networks:\n  dev: {source: 'http://127.0.0.1:1', pool: some}\n", []string{"networks", `unknown pool "some"`, "all, sent or none"}},
		{"the genesis of another public network", "networks:\n  mainnet:\n    genesis: sepolia\n", []string{"networks", "ashlar.yaml:3: networks.mainnet.genesis", "the network mainnet has the genesis of sepolia"}},
		{"the chain of another public network", "networks:\n  sepolia:\n    family: starknet\n    chain: SN_MAIN\n", []string{"networks", "ashlar.yaml:4: networks.sepolia.chain", "the network sepolia has the chain SN_MAIN (want SN_SEPOLIA"}},
		{"credits of an unknown method", "credits:\n  eth_getLog: 5\n  other: 7\n", []string{"ashlar.yaml:2: credits", `unknown method "eth_getLog" (want one of docs/methods.md, or other)`}},
		{"a quorum without a source", "networks:\n  dev:\n    quorum: 2\n", []string{"networks", "ashlar.yaml:3: networks.dev.quorum", "quorum 2 of 0 nodes"}},
		{"a quorum above the number of nodes", "networks:\n  dev:\n    source: [http://a, http://b]\n    quorum: 3\n", []string{"networks", "ashlar.yaml:4: networks.dev.quorum", "quorum 3 of 2 nodes (want 1 to the number of nodes in source)"}},
		{"a quorum of none", "networks:\n  dev:\n    source: [http://a, http://b]\n    quorum: 0\n", []string{"networks", "ashlar.yaml:4: networks.dev.quorum", "quorum 0 of 2 nodes"}},
		{"a quorum beside an engine", "networks:\n  dev:\n    source: [http://a, http://b]\n    engine: {listen: 127.0.0.1:8551}\n    quorum: 2\n", []string{"networks", "ashlar.yaml:5: networks.dev.quorum", "the consensus client says what the head is"}},
		{"a pool without a source", "networks:\n  dev:\n    pool: sent\n", []string{"networks", "ashlar.yaml:3: networks.dev.pool", "pool is for networks with a source"}},
		{"secret without a listener", "networks:\n  mainnet:\n    engine: {jwt: a}\n", []string{"ashlar.yaml:3: networks.mainnet.engine", "without listen"}},
		{"engine's address", "networks:\n  mainnet:\n    engine: {listen: here}\n", []string{"mainnet", `"here"`, "invalid address"}},
		{"entries of another family", "networks:\n  a:\n    family: starknet\n    engine: {listen: ':1'}\n    pool: all\n  b: {chain: SN_MAIN, first: 1}\nlisten: foo\n", []string{
			"ashlar.yaml:4: networks.a.engine: unknown entry of a network of family starknet (family: evm has it)", "ashlar.yaml:5: networks.a.pool",
			"ashlar.yaml:7: listen", "ashlar.yaml:6: networks.b.chain: unknown entry of a network of family evm (family: starknet has it)", "networks.b.first"}},
		{"entry of no family", "networks:\n  a: {sources: x}\n", []string{"ashlar.yaml:2: networks.a.sources: unknown entry of a network of family evm"}},
		{"unknown entry below an entry of a family", "networks:\n  a: {engine: {lissten: x}}\n", []string{"ashlar.yaml:2: networks.a.engine.lissten: unknown entry; did you mean listen?"}},
		{"value of a family's entry", "networks:\n  a: {family: starknet, first: x}\n", []string{"ashlar.yaml:2: networks.a.first", `"x"`, "expected a whole number, 0 or more"}},
		{"several families' problems", "networks:\n  a: {pool: all}\n  b: {engine: {jwt: a}}\nlisten: foo\n", []string{"ashlar.yaml:2: networks.a.pool", "ashlar.yaml:3: networks.b.engine", "ashlar.yaml:4: listen"}},
		{"unknown family", "networks:\n  a:\n    family: plasma\n", []string{"ashlar.yaml:3: networks.a.family", `unknown family "plasma" (want evm, starknet or forwarded)`}},
		{"no YAML", "data: [\n", []string{"ashlar.yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			for _, leak := range []string{"Go ", "time.Duration", "strconv", "unmarshal", "/secret"} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("the error speaks of %q:\n%v", leak, err)
				}
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

// One document may be marked as such.
func TestConfigOfOneDocument(t *testing.T) {
	for _, text := range []string{"---\ndata: x\n", "# a\n---\ndata: x\n...\n", "data: x\n# end\n", "", "---\n", "data:\nlisten: 127.0.0.1:0\n"} {
		if _, err := loadText(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A genesis that no server could begin with is told before one is started.
func TestCheckReadsTheGenesis(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ashlar.yaml")
	if err := os.WriteFile(path, []byte("networks:\n  a:\n    genesis: nope\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(path, families()); err == nil || !strings.Contains(err.Error(), "ashlar.yaml:3: networks.a.genesis") {
		t.Errorf("got %v", err)
	}
}

// A network with an upstream is forwarded; a family that is named wins.
func TestImpliedFamily(t *testing.T) {
	c, err := loadText(t, "networks:\n  a: {upstream: 'http://127.0.0.1:1'}\n  b: {source: 'http://127.0.0.1:1'}\n")
	if err != nil || c.Networks["a"].Family != "forwarded" || c.Networks["b"].Family != "" {
		t.Errorf("families %q and %q, %v", c.Networks["a"].Family, c.Networks["b"].Family, err)
	}
	if _, err := loadText(t, "networks:\n  a: {family: starknet, upstream: 'http://127.0.0.1:1'}\n"); err == nil {
		t.Error("a Starknet network has an upstream")
	}
	for text, want := range map[string]string{
		"upstream: ws://a.test":                         "unknown scheme",
		"upstream: [http://a.test, {backup: true}]":     "expected the URL of a node",
		"{upstream: http://a.test, quorum: 2}":          "quorum 2 of 1 nodes",
		"{upstream: http://a.test, check: most}":        `unknown check "most" (want none or headers, or state for an EVM network with its genesis)`,
		"{upstream: http://a.test, poll: 1ms}":          "1ms is too short",
		"{upstream: http://a.test, methods: [latest]}":  `invalid method "latest"`,
		"{family: forwarded}":                           "no nodes",
		"{upstream: http://a.test, source: http://b.c}": "source: unknown entry",
	} {
		if _, err := loadText(t, "networks:\n  a:\n    "+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// If the configuration does not name a network's family, its entries are those of
// whichever family the stored network has, if that family has them.
func TestEntriesWithoutAFamily(t *testing.T) {
	c, err := loadText(t, "networks:\n  a: {source: 'http://127.0.0.1:1'}\n  b: {source: 'http://127.0.0.1:1', pool: sent}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families() {
		if _, err := c.Networks["a"].Entries(f); (err == nil) != (f.Name() != "forwarded") {
			t.Errorf("a as a network of family %s: %v", f.Name(), err)
		}
		if _, err := c.Networks["b"].Entries(f); (err == nil) != (f.Name() == "evm") {
			t.Errorf("b as a network of family %s: %v", f.Name(), err)
		}
	}
}

// TestAddedMethods: a method that a forwarded network passes to its nodes can be restricted, and have a price.
func TestAddedMethods(t *testing.T) {
	c, err := loadText(t, `
networks:
  l2: {upstream: "http://a.test", methods: [arbtrace_call], restricted: [arbtrace_*, debug_*]}
credits: {arbtrace_call: 5}
`)
	if err != nil || c.Credits["arbtrace_call"] != 5 {
		t.Errorf("%v, %v", c.Credits, err)
	}
}
