package cluster

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/node"
)

// imported returns a writer into whose keyspace a chain was imported.
func imported(t *testing.T) node.Ashlar {
	t.Helper()
	genesis, blocks := ingesttest.Crossing(t)
	folder := t.TempDir()
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	shell := process(t, newKeyspace(t), "writer")
	importInto(t, shell, writeFile(t, folder, "genesis.json", text), writeChain(t, folder, "chain.rlp", blocks))
	return shell
}

// TestUsage kills a reader, which has counted requests. What it has written is counted once:
// while it runs, when it has gone, beside another reader, and when it is back.
func TestUsage(t *testing.T) {
	shell := imported(t)
	key, err := shell.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkCommands(t, shell)
	requests := func() (sum uint64) {
		t.Helper()
		var lines []struct{ Requests uint64 }
		if err := json.Unmarshal([]byte(output(t, shell, "key", "usage", "--json", keyID(key))), &lines); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			sum += l.Requests
		}
		return sum
	}
	reader := func(address string) (*node.Process, func(requests int)) {
		t.Helper()
		p := readerAt(t, shell, address)
		client := node.NewClient("http://" + address + "/v3/" + key)
		return p, func(requests int) {
			t.Helper()
			for range requests {
				if _, _, err := head(t, client); err != nil {
					t.Error(err)
				}
			}
		}
	}
	first, second := freeAddress(t), freeAddress(t)
	p, ask := reader(first)
	ask(50)
	within(t, "what a running reader has counted is known", func() bool { return requests() == 50 })
	ask(7)
	p.Kill()
	known := requests()
	if known < 50 || known > 57 {
		t.Errorf("%d requests when the reader was killed, expected 50 to 57", known)
	}
	t.Logf("%d of 57 requests are known when the reader was killed", known)
	for _, address := range []string{second, first} {
		p, ask = reader(address)
		ask(10)
		known += 10
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		got := requests()
		if address == second && got > known && got <= 57+10 { // the killed one was writing, and a node has it that was not asked then
			t.Logf("%d more requests are known later", got-known)
			known = got
		}
		if got != known {
			t.Errorf("%d requests when a reader at %s has ended, expected %d", got, address, known)
		}
	}
}

// output returns what a command prints that works on a keyspace.
func output(t *testing.T, a node.Ashlar, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), a.Bin, append(command, "--config", a.Config)...).Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return string(out)
}

// checkCommands tries commands on a keyspace without a server.
func checkCommands(t *testing.T, a node.Ashlar) {
	t.Helper()
	output(t, a, "account", "create", "user@example.org")
	if accounts := output(t, a, "account", "list", "--json"); !strings.Contains(accounts, "user@example.org") {
		t.Errorf("accounts are %s, expected one of user@example.org", accounts)
	}
	if status := output(t, a, "status", "--json"); !strings.Contains(status, `"`+network+`"`) {
		t.Errorf("the status is %s, expected that of network %s", status, network)
	}
}
