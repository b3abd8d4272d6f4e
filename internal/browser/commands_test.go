package browser

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// withID returns the text of the element with an ID.
func withID(page *html.Node, id string) string {
	for _, n := range elements(page, func(n *html.Node) bool { is, _ := attribute(n, "id"); return is == id }) {
		return textOf(n)
	}
	return ""
}

// The commands on the pages for tokens and in the documentation work as they are, with a
// token and a key.
func TestCommands(t *testing.T) {
	t.Parallel()
	needsCurl(t)
	s := serve(t)
	c := s.signedIn(t)
	key := withID(c.post("/keys/new", url.Values{"name": {"commands"}}), "api-key")
	page := c.post("/account/tokens", url.Values{"name": {"CI"}, "expires": {"7"}, "password": {s.password}})
	token := withID(page, "token")
	if key == "" || token == "" {
		t.Fatalf("key %q, token %q", key, token)
	}
	run := func(command *html.Node, want string) {
		t.Helper()
		text := strings.ReplaceAll(textOf(command), "YOUR-KEY", key)
		shell := exec.CommandContext(t.Context(), "sh", "-c", text+" -s")
		shell.Env = append(os.Environ(), "ASHLAR_TOKEN="+token)
		if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s\nprints %s, %v; expected %s", text, out, err, want)
		}
	}
	commands := elements(labelled(page, "use-token"), named("pre"))
	if len(commands) != 2 {
		t.Fatalf("%d commands for tokens", len(commands))
	}
	run(commands[0], `"name":"commands"`)
	run(commands[1], `"perDay":100000`)
	run(elements(labelled(c.get("/docs"), "first-call"), named("pre"))[0], `"result":"0x`)
	for _, method := range []string{"eth_getLogs", "debug_traceTransaction", "starknet_getBlockWithTxHashes"} {
		run(elements(labelled(c.get("/docs/methods/"+method), "example"), named("pre"))[0], `"result":`)
	}
}
