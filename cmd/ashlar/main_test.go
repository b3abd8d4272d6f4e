package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What scripts rely on: 0 done, 1 failed, 2 wrong usage.
func TestExitCodes(t *testing.T) {
	empty := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		want int
	}{
		{"help", []string{"--help"}, exitDone},
		{"version", []string{"--version"}, exitDone},
		{"version as a command", []string{"version"}, exitDone},
		{"no command", nil, exitUsage},
		{"unknown command", []string{"mine"}, exitUsage},
		{"unknown flag", []string{"serve", "--port", "1"}, exitUsage},
		{"missing flag", []string{"serve"}, exitUsage},
		{"team without an owner", []string{"team", "create", "--data", empty, "a"}, exitUsage},
		{"two forms of output", []string{"version", "--json", "--sbom"}, exitUsage},
		{"JSON again and again", []string{"status", "--data", empty, "--json", "--watch"}, exitUsage},
		{"list and check", []string{"restore", "--from", empty, "--list", "--check"}, exitUsage},
		{"unexpected argument", []string{"key", "create", "--data", empty, "a"}, exitUsage},
		{"health without a URL", []string{"health", "--url", "127.0.0.1:8545"}, exitUsage},
		{"no backups to list", []string{"restore", "--from", filepath.Join(empty, "nowhere"), "--list"}, exitFailed},
		{"group without command", []string{"key"}, exitUsage},
		{"missing file", []string{"import", "--data", empty, "--network", "a"}, exitUsage},
		{"nothing to serve", []string{"serve", "--data", empty}, exitFailed},
		{"no such file", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "nowhere.rlp"}, exitFailed},
		{"no such genesis", []string{"import", "--data", empty, "--network", "b", "--genesis", "nowhere.json", "nowhere.rlp"}, exitFailed},
		{"bad name", []string{"import", "--data", empty, "--network", "../b", "--genesis", "sepolia", "nowhere.rlp"}, exitFailed},
		{"a key", []string{"key", "create", "--data", empty}, exitDone},
		{"status", []string{"status", "--data", empty}, exitDone},
		{"demo without time between blocks", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "0s"}, exitUsage},
		{"demo back in time", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "-1s"}, exitUsage},
		{"verify without a network", []string{"verify", "--data", empty}, exitUsage},
		{"nothing to verify", []string{"verify", "--data", empty, "--network", "a"}, exitFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := os.Args
			defer func() { os.Args = args }()
			os.Args = append([]string{"ashlar"}, test.args...)
			if got := run(t.Context()); got != test.want {
				t.Errorf("exit code %d, expected %d", got, test.want)
			}
		})
	}
}

// An error in the command line says what is wrong in the command's own words.
func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"version --json --sbom":              "--json and --sbom exclude each other; see ashlar version --help",
		"restore --from x --list --check":    "--list and --check exclude each other",
		"status --data x --watch --json":     "--json and --watch exclude each other",
		"team create --data x a":             "missing --owner",
		"key create --data x a":              `unexpected argument "a"; see ashlar key create --help`,
		"snapshot export":                    `unknown command "export" for "ashlar snapshot"`,
		"health --url 127.0.0.1:8545":        "expected a URL such as",
		"health --url localhost:8545/readyz": "expected a URL such as",
		"key revoke --data x":                "accepts 1 arg(s), received 0",
	} {
		root := commands()
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("ashlar %s: %v, expected %q", args, err, want)
		}
	}
}
