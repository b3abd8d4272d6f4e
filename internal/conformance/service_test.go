package conformance

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"ashlar/internal/node"
)

// binaryFolder holds the binaries built by this test run.
var binaryFolder string

// binary returns the path of the service, built once for all tests.
var binary = sync.OnceValues(func() (string, error) { return node.BuildAshlar(context.Background(), binaryFolder) })

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ashlar-conformance-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binaryFolder = dir
		return m.Run()
	}())
}

// service is the binary with a data directory.
type service struct{ node.Ashlar }

// newService returns the service with an empty data directory.
func newService(t *testing.T) service {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return service{node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test"}}
}

// importChain imports files into a new data directory and expects exit code 0. genesis is a file or the
// name of a built-in network.
func importChain(t *testing.T, genesis string, files ...string) service {
	t.Helper()
	s := newService(t)
	s.importFiles(t, genesis, files...)
	return s
}

func (s service) importFiles(t *testing.T, genesis string, files ...string) {
	t.Helper()
	p, err := s.Import(t.Context(), genesis, files...)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("imported in %v, %v of CPU, %d MiB", usage.Wall.Round(1e6), usage.CPU.Round(1e6), usage.MaxRSS>>20)
}

// serve runs the service until the test ends, and then expects a graceful stop.
func (s service) serve(t *testing.T) *node.Client {
	t.Helper()
	// The test's own context ends before its cleanups run.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p, client, err := s.Serve(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// header is the part of a block object that these tests use.
type header struct {
	Number    hexutil.Uint64 `json:"number"`
	Hash      common.Hash    `json:"hash"`
	StateRoot common.Hash    `json:"stateRoot"`
}

func latest(t *testing.T, c *node.Client) header {
	t.Helper()
	return blockAt(t, c, "latest")
}

// blockAt returns the block with a tag or number.
func blockAt(t *testing.T, c *node.Client, at string) header {
	t.Helper()
	var h *header
	if err := c.Call(t.Context(), &h, "eth_getBlockByNumber", at, false); err != nil {
		t.Fatal(err)
	}
	if h == nil {
		t.Fatalf("no block %s", at)
	}
	return *h
}

// checkHead compares number and hash of the newest block.
func checkHead(t *testing.T, c *node.Client, number uint64, hash common.Hash) header {
	t.Helper()
	var n hexutil.Uint64
	if err := c.Call(t.Context(), &n, "eth_blockNumber"); err != nil {
		t.Fatal(err)
	}
	h := latest(t, c)
	if uint64(n) != number || uint64(h.Number) != number || h.Hash != hash {
		t.Errorf("head: eth_blockNumber %d, latest block %d %s, want %d %s", n, h.Number, h.Hash, number, hash)
	}
	return h
}
