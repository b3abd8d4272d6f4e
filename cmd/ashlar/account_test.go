package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// shell is a data directory that commands work on.
type shell struct {
	*testing.T
	data string
}

// do runs a command, which must have an exit code, and returns what it prints.
func (s shell) do(code int, args ...string) string {
	s.Helper()
	got, out := runCommand(s.T, append(args, "--data", s.data)...)
	if got != code {
		s.Errorf("%v: exit code %d, expected %d:\n%s", args, got, code, out)
	}
	return out
}

// says runs a command that must succeed and print what matches a pattern, of which it
// returns the first group.
func (s shell) says(pattern string, args ...string) string {
	s.Helper()
	out := s.do(exitDone, args...)
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if found == nil {
		s.Fatalf("%v prints what does not match %s:\n%s", args, pattern, out)
	}
	return found[len(found)-1]
}

func TestAccountsFromTheShell(t *testing.T) {
	s := shell{t, t.TempDir()}
	s.says(`^([0-9a-f]{48})\nlink: http://localhost:8545/reset\?token=[0-9a-f]{48}\n$`, "account", "create", "Boss@example.org", "--role", "operator")
	id := s.says(`(?m)^([0-9a-f]{16})  boss@example.org +operator .* - +- +- +-$`, "account", "list")
	s.says(`^([0-9a-f]{48})\nvalid until \d{4}-`, "account", "reset", "boss@example.org")
	for _, c := range []struct{ args, list string }{
		{"account role boss@example.org user", `boss@example.org +user `},
		{"account limit boss@example.org --per-second 5 --per-day 700 --keys 3", ` 5 +700 +3\n`},
		{"account disable boss@example.org", `user +\d{4}-\S+ \S+ +\d{4}-\S+ \S+ +5`},
		{"account enable " + id, `user +\d{4}-\S+ \S+ +- +5`},
	} {
		s.says("^"+id+"\n$", strings.Fields(c.args)...)
		s.says(c.list, "account", "list")
	}
	invitation := s.says(`^[0-9a-f]{32}\ninvitation ([0-9a-f]{16}) is valid until`, "account", "invite", "new@example.org", "--valid", "1h")
	s.says("(?m)^"+invitation+`  new@example.org  user .* open$`, "account", "invitations")
	s.says("^"+invitation+"\n$", "account", "withdraw", invitation)
	s.says("(?m)^"+invitation+` .* withdrawn$`, "account", "invitations")

	if out := s.do(exitUsage, "account", "delete", id); !strings.Contains(out, "give --yes to delete it") {
		t.Errorf("delete without --yes: %s", out)
	}
	s.do(exitDone, "account", "create", "gone@example.org")
	s.says(`(?m)^[0-9a-f]{16}\n$`, "account", "delete", "gone@example.org", "--yes")
	for want, args := range map[string]string{
		"no such account: none has":        "account delete gone@example.org --yes",
		"no such account":                  "account disable nobody@example.org",
		"unknown role \"king\" (want user": "account role boss@example.org king",
		"there is an account with":         "account create boss@example.org",
		"the account has no second factor": "account reset-factor boss@example.org",
		"invalid e-mail address":           "account create boss",
		"this invitation is not valid":     "account withdraw " + invitation,
		"expected from 1 minute to 90":     "account invite --valid 1s",
		"see ashlar account list":          "key create --account nobody@example.org",
		"no such key":                      "key rotate nothing",
		"an overlap of 10000h":             "key rotate nothing --overlap 10000h",
		"is in the past: expected a ti":    "key create --expires-in -1h",
	} {
		if out := s.do(exitFailed, strings.Fields(args)...); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", args, want, out)
		}
	}
	for want, args := range map[string]string{
		"expected hour, day, network, method or key":                                                      "key usage --by moon",
		"--days 99999999: expected from 1 to 10000":                                                       "key usage --days 99999999",
		"--days 0: expected from 1 to 10000":                                                              "key usage --days 0",
		`--per-second "-1": expected a whole number from 0 to 4294967295; see ashlar key restrict --help`: "key restrict first --per-second -1",
		`--per-day "x": expected a whole number from 0 to 18446744073709551615`:                           "account limit boss --per-day x",
		`--days "x": expected a whole number`:                                                             "key usage --days x",
		`--in "month": expected a time such as 90s, 30m or 720h`:                                          "key expire first --in month",
		`--json "x": expected true or false`:                                                              "key list --json=x",
		`unknown network "nosuchnet" (want one that was imported; there is none)`:                         "key restrict first --networks nosuchnet",
		`unknown method "eth_foo" (want one of docs/methods.md, or the beginning of one and *)`:           "key restrict first --methods eth_call,eth_foo",
		`unknown method "ethx_*" (want`:                                                                   "key restrict first --methods ethx_*",
		`--addresses: invalid address "foo" (want one such as 192.0.2.7 or 192.0.2.0/24)`:                 "key restrict first --addresses foo",
	} {
		out := s.do(exitUsage, strings.Fields(args)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", args, want, out)
		}
		if strings.Contains(out, "strconv") || strings.Contains(out, "netip") {
			t.Errorf("%s tells of Go's functions:\n%s", args, out)
		}
	}
}

func TestKeysFromTheShell(t *testing.T) {
	s := shell{t, t.TempDir()}
	s.do(exitDone, "account", "create", "a@example.org")
	text := s.says(`^([0-9a-f]{32})\n$`, "key", "create", "--name", "first", "--account", "a@example.org")
	s.says(`^([0-9a-f]{32})\n[0-9a-f]{32}\n$`, "key", "create", "--name", "second", "--password", "--expires-in", "720h")
	id := s.says(`(?m)^([0-9a-f]{16})  first +a@example.org .* - +- +-$`, "key", "list")
	s.says(`(?m)second +- +\S+ \S+ +- +\d{4}-`, "key", "list")
	if out := s.do(exitDone, "key", "list", "--account", "a@example.org"); strings.Contains(out, "second") {
		t.Errorf("the keys of one account: %s", out)
	}
	s.says(`^`+id+`\n$`, "key", "limit", "first", "--per-day", "5")
	s.says(`^`+id+`\n$`, "key", "restrict", "first", "--addresses", "192.0.2.7,192.0.2.77/24,2001:db8::1", "--per-day", "5")
	s.says(`"192.0.2.7/32",\s+"192.0.2.0/24",\s+"2001:db8::1/128"`, "key", "list", "--json")
	s.says(`^`+id+`\n$`, "key", "expire", "first", "--in", "1h")
	s.says(`^([0-9a-f]{32})\n$`, "key", "password", "first")
	s.says(`^`+id+`\n$`, "key", "password", "first", "--remove")
	if other := s.says(`^([0-9a-f]{32})\n$`, "key", "rotate", "first", "--overlap", "24h"); other == text {
		t.Error("rotating gives the same key")
	}
	var listed []struct {
		ID      string
		Name    string
		Overlap string
		Expires string
		Rules   struct{ PerDay int }
	}
	out := s.do(exitDone, "key", "list", "--account", "a@example.org", "--json")
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != 1 || listed[0].ID != id || listed[0].Overlap == "" ||
		listed[0].Expires == "" || listed[0].Rules.PerDay != 5 || strings.Contains(out, text) {
		t.Errorf("listed as JSON: %v\n%s", err, out)
	}
	s.says(`^TIME  REQUESTS  ERRORS  CREDITS  MEAN  95 % WITHIN\n$`, "key", "usage")
	s.says(`^KEY  NETWORK  METHOD  REQUESTS .*\n$`, "key", "usage", "first", "--by", "key,network,method")
	s.says(`^\[\]\n$`, "key", "usage", "--account", "a@example.org", "--json")
	s.says(`^`+id+`\n$`, "key", "revoke", "first")
	leaked := s.says(`^([0-9a-f]{32})\n$`, "key", "create", "--name", "leaked")
	s.says(`^([0-9a-f]{16})\n$`, "key", "revoke", leaked)
	if out := s.do(exitFailed, "key", "revoke", leaked); strings.Contains(out, leaked) || !strings.Contains(out, "no key that is in use has this text") {
		t.Errorf("a key that is revoked already: %s", out)
	}
	s.says(`(?m)^`+id+` .*\d{2}:\d{2}:\d{2}$`, "key", "list")
}
