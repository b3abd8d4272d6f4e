package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestInterrupted: each command that takes long says what its interruption leaves.
func TestInterrupted(t *testing.T) {
	for _, test := range []struct{ command, want string }{
		{"verify", "nothing was changed, and the check is not complete"},
		{"rewind", "the same command completes it; until then the network may not be served"},
		{"snapshot load", "the same command continues"},
		{"key create", "acknowledged changes are kept"},
	} {
		c, _, err := commands().Find(strings.Fields(test.command))
		if err != nil {
			t.Fatal(err)
		}
		if got := afterInterruption(c); got != test.want {
			t.Errorf("%s: %q, want %q", test.command, got, test.want)
		}
	}
	for _, reads := range []string{"--check", "--list"} {
		root := commands()
		root.SetArgs([]string{"restore", reads})
		ran, _ := root.ExecuteC()
		if got, want := afterInterruption(ran), "nothing was changed"; got != want {
			t.Errorf("restore %s: %q, want %q", reads, got, want)
		}
	}
}

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
		{"more proofs than states", []string{"prune", "--data", empty, "--network", "a", "--proofs", "5", "--state", "4"}, exitUsage},
		{"nothing to serve", []string{"serve", "--data", empty}, exitFailed},
		{"no such file", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "nowhere.rlp"}, exitFailed},
		{"no such genesis", []string{"import", "--data", empty, "--network", "b", "--genesis", "nowhere.json", "nowhere.rlp"}, exitFailed},
		{"bad name", []string{"import", "--data", empty, "--network", "../b", "--genesis", "sepolia", "nowhere.rlp"}, exitUsage},
		{"a key", []string{"key", "create", "--data", empty}, exitDone},
		{"status", []string{"status", "--data", empty}, exitDone},
		{"demo without time between blocks", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "0s"}, exitUsage},
		{"demo back in time", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "-1s"}, exitUsage},
		{"verify without a network", []string{"verify", "--data", empty}, exitUsage},
		{"bad name to verify", []string{"verify", "--data", empty, "--network", "../b"}, exitUsage},
		{"bad name to begin", []string{"snapshot", "load", "--data", empty, "--network", "B", "--genesis", "sepolia", "--from", empty, "--block", "0x1"}, exitUsage},
		{"unknown family", []string{"import", "--data", empty, "--network", "a", "--family", "solana", "main.go"}, exitUsage},
		{"a flag of another family", []string{"import", "--data", empty, "--network", "a", "--chain", "SN_MAIN", "main.go"}, exitUsage},
		{"unknown trace index", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "--trace-index", "maybe", "main.go"}, exitUsage},
		{"unknown state", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "--state", "besu:x"}, exitUsage},
		{"state without a genesis", []string{"import", "--data", empty, "--network", "a", "--state", "geth:x"}, exitUsage},
		{"no such directory of geth", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "--state", "geth:nowhere"}, exitFailed},
		{"no node for older blocks", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "--older", "node"}, exitUsage},
		{"no hash of a block", []string{"snapshot", "load", "--data", empty, "--network", "a", "--genesis", "sepolia", "--from", empty, "--block", "0x1"}, exitUsage},
		{"too little memory for a snapshot", []string{"snapshot", "load", "--data", empty, "--network", "a", "--genesis", "sepolia", "--from", empty, "--block", "0x" + strings.Repeat("1", 64), "--memory", "512MiB"}, exitUsage},
		{"no such snapshot", []string{"snapshot", "load", "--data", empty, "--network", "a", "--genesis", "sepolia", "--from", empty, "--block", "0x" + strings.Repeat("1", 64), "--memory", "1GiB"}, exitFailed},
		{"unknown kind of target", []string{"backup", "--data", empty, "--to", "ftp://host/x"}, exitUsage},
		{"bucket without a name", []string{"restore", "--list", "--from", "s3://"}, exitUsage},
		{"no address to listen on", []string{"serve", "--data", empty, "--listen", "8545"}, exitUsage},
		{"no such port", []string{"demo", "--listen", "127.0.0.1:99999"}, exitUsage},
		{"no address for operators", []string{"demo", "--listen", "127.0.0.1:0", "--operator", "6060"}, exitUsage},
		{"unknown role", []string{"account", "create", "--data", empty, "a@example.org", "--role", "king"}, exitUsage},
		{"unknown role of an invitation", []string{"account", "invite", "--data", empty, "--role", "king"}, exitUsage},
		{"unknown role in a team", []string{"team", "invite", "--data", empty, "Granite", "--role", "king"}, exitUsage},
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
		"serve":                              "no data directory is given: type ashlar serve --data DIR",
		"account invite --role king":         `--role "king": expected user or operator; see ashlar account invite --help`,
		"team add x y --role king":           `--role "king": expected member, owner or viewer`,
		"serve --data x --listen 8545":       `--listen: invalid address "8545" (want one such as 127.0.0.1:8545)`,
		"version --json --sbom":              "--json and --sbom exclude each other; see ashlar version --help",
		"restore --from x --list --check":    "--list and --check exclude each other",
		"status --data x --watch --json":     "--json and --watch exclude each other",
		"team create --data x a":             "missing --owner",
		"key create --data x a":              `unexpected argument "a"; see ashlar key create --help`,
		"snapshot export":                    `unknown command "export" for "ashlar snapshot"`,
		"health --url 127.0.0.1:8545":        "expected a URL such as",
		"health --url localhost:8545/readyz": "expected a URL such as",
		"key revoke --data x":                "missing ID|NAME|KEY; see ashlar key revoke --help",
		"config check":                       "missing FILE; see ashlar config check --help",
		"config check a b":                   `unexpected argument "b"; see ashlar config check --help`,
		"account role --data x":              "missing EMAIL|ID and user|operator; see",
		"account role --data x y":            "usage: missing user|operator; see",
		"team invite --data x":               "usage: missing TEAM; see",
		"team invite --data x a b c":         `unexpected argument "c"`,
		"network remove --yes --data x":      "usage: missing NAME; see",
		"backup --data x --to y --every 0h":  "--every 0s: expected at least 1m; see ashlar backup --help",
		"backup --data x --to y --every -1h": "--every -1h0m0s: expected at least 1m",
	} {
		root := commands()
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("ashlar %s: %v, expected %q", args, err, want)
		}
	}
}

// A command that lacks arguments names them as its usage does.
func TestMissingArguments(t *testing.T) {
	var lacking int
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		if c.Args == nil || c.HasSubCommands() {
			return
		}
		err := c.Args(c, nil)
		if err == nil {
			return
		}
		lacking++
		named, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "usage: missing "), ";")
		for _, operand := range strings.Split(named, " and ") {
			if !slices.Contains(strings.Fields(c.Use), operand) {
				t.Errorf("%s: %v, expected the missing arguments of %q", c.CommandPath(), err, c.Use)
			}
		}
	}
	each(commands())
	if lacking < 10 {
		t.Errorf("%d commands need arguments, expected at least 10", lacking)
	}
}
