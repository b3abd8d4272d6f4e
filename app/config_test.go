package app

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
	return LoadConfig(path)
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
	if want := DefaultConfig(); config.Listen != want.Listen || config.Limits.BatchCalls != want.Limits.BatchCalls {
		t.Errorf("the defaults are lost: %+v", config)
	}
}

// A wrong entry is refused with the file, the line, and what was expected.
func TestConfigErrorsNameThePlace(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"unknown entry", "data: x\nlissten: y\n", []string{"ashlar.yaml", "[2:1]", `unknown field "lissten"`}},
		{"unknown nested entry", "limits:\n  bodies: 1\n", []string{"[2:3]", `unknown field "bodies"`}},
		{"wrong kind", "limits:\n  batch_calls: many\n", []string{"[2:16]", "int"}},
		{"no size", "cache: much\n", []string{"ashlar.yaml", "no size", "64MiB"}},
		{"too small", "data: x\nlimits:\n  time: 5s\n  body: 10\n", []string{"ashlar.yaml:4:", "limits.body", "expected at least 1024"}},
		{"network's name", "data: x\nnetworks:\n  Main_Net: {}\n", []string{"networks", `"Main_Net"`, "lower-case letters"}},
		{"reserved name", "networks:\n  ws: {}\n", []string{"ashlar.yaml:2:", `"ws" cannot be a network's name`, "none of v3, ws"}},
		{"no host", "networks:\n  main-net:\n    hosts: [EA.test]\n", []string{"ashlar.yaml:3: networks.main-net.hosts", `"EA.test" is no host`, "lower-case name"}},
		{"no pool", "networks:\n  dev: {source: 'http://127.0.0.1:1', pool: some}\n", []string{"networks", `"some" is no pool`, "all, sent or none"}},
		{"a pool without a source", "networks:\n  dev:\n    pool: sent\n", []string{"networks", "pool is for EVM networks with a source"}},
		{"secret without a listener", "networks:\n  mainnet:\n    engine: {jwt: a}\n", []string{"ashlar.yaml:3: networks.mainnet", "without engine.listen"}},
		{"engine's address", "networks:\n  mainnet:\n    engine: {listen: here}\n", []string{"mainnet", `"here"`, "expected an address"}},
		{"engine of a rollup", "networks:\n  starknet:\n    family: rollup\n    engine: {listen: ':1'}\n", []string{"starknet", "engine is for EVM networks"}},
		{"no YAML", "data: [\n", []string{"ashlar.yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}
