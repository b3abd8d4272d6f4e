package verified

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// serveVerified serves a network over nodes, and returns when it has reached a head.
func serveVerified(t *testing.T, genesis string, quorum int, head uint64, upstreams ...string) (*node.Process, *node.Client) {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  test: {family: evm, upstream: [%s], check: state, genesis: %s, quorum: %d, call_gas: 50000000}\n",
		`"`+strings.Join(upstreams, `", "`)+`"`, genesis, quorum)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: config}
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var number string
		err := client.Call(ctx, &number, "eth_blockNumber")
		if err == nil && number == fmt.Sprintf("%#x", head) {
			return p, client
		}
		if ctx.Err() != nil {
			t.Fatalf("the head is %s, %v, expected %#x; its last words:\n%s", number, err, head, p.Output())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
