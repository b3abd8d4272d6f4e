package verified

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// serveGeth serves a chain with geth as an archive node.
func serveGeth(t *testing.T, genesis string, chain ...string) *node.Client {
	t.Helper()
	bin, err := node.FindGeth()
	if err != nil {
		vectors.Missing(t, err.Error())
	}
	g := node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme}
	if err := g.Init(t.Context(), genesis); err != nil {
		t.Fatal(err)
	}
	if len(chain) > 0 {
		p, err := g.Import(t.Context(), chain...)
		if err == nil {
			_, err = p.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, client, err := g.Serve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return client
}

// network is a network whose answers come from other nodes.
type network struct {
	check   string
	genesis string // for check: state
	quorum  int
	nodes   []string // entries of upstream
}

// over returns the network with nodes.
func (n network) over(urls ...string) network {
	n.nodes = nil
	for _, url := range urls {
		n.nodes = append(n.nodes, "{url: \""+url+"\"}")
	}
	return n
}

// withBackup adds a node that is asked only if no other can answer.
func (n network) withBackup(url string) network {
	n.nodes = append(n.nodes, "{url: \""+url+"\", backup: true}")
	return n
}

// endpoint is where a network is served.
type endpoint struct {
	*node.Client
	operator string // address of the operator's listener
}

// serve serves the network, and returns when it has reached a head.
func (n network) serve(t *testing.T, head uint64) (*node.Process, *endpoint) {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	operator, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	entries := ""
	if n.check == "state" {
		entries = fmt.Sprintf(", family: evm, genesis: %s, call_gas: 50000000", n.genesis)
	}
	text := fmt.Sprintf("operator: %s\nnetworks:\n  test: {upstream: [%s], check: %s, quorum: %d%s}\n",
		operator, strings.Join(n.nodes, ", "), n.check, n.quorum, entries)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: config}
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	for {
		var number string
		err := client.Call(ctx, &number, "eth_blockNumber")
		if err == nil && number == quantity(head) {
			return p, &endpoint{client, operator}
		}
		if ctx.Err() != nil {
			t.Fatalf("the head is %s, %v, expected %#x; its last words:\n%s", number, err, head, p.Output())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// headOf returns the number of the newest block of a node.
func headOf(t *testing.T, c *node.Client) uint64 {
	t.Helper()
	var block struct{ Number string }
	if err := c.Call(t.Context(), &block, "eth_getBlockByNumber", "latest", false); err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(block.Number, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
