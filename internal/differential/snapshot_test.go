package differential

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// TestSnapshot makes snapshots next to a running server, and begins networks with them. The
// processes are killed at every request, or at random. Every answer about the snapshot's
// blocks and the ones after them must be that of an Ashlar that has executed the whole chain.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	generated := generateChain(t, 400, 8)
	for _, c := range []struct {
		name, folder string
		first, last  uint64
	}{
		{"generated", generated, 300, 350},
		{"generated, the state alone", generated, 380, 380},
		{"made by hive", vectors.Path(t, "chains", "sync-3000"), 2900, 2950},
	} {
		t.Run(c.name, func(t *testing.T) {
			genesis, file := filepath.Join(c.folder, "genesis.json"), filepath.Join(c.folder, "chain.rlp")
			whole, asked := serveAshlar(t, genesis, file)
			chain := learn(t, genesis, file, asked)
			snapshot := createSnapshot(t, whole, c.first, c.last)
			part := newAshlar(t, whole.Config)
			loadSnapshot(t, part, genesis, snapshot, chain.Blocks[c.last].Hash.Hex())
			_, after := splitChain(t, file, c.last)
			p, err := part.Import(t.Context(), genesis, after)
			awaitImport(t, p, err)
			if out, err := part.Verify(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			p, answers := serve(t, part)
			defer p.Kill()
			compareFrom(t, chain, asked, answers, c.first)
			compareSearches(t, chain, asked, answers, c.first)
		})
	}
}

// createSnapshot makes the same snapshot twice, once with kills, and returns its folder.
func createSnapshot(t *testing.T, of node.Ashlar, first, last uint64) (folder string) {
	t.Helper()
	t.Logf("seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, first))
	folder, killed := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	p, err := of.CreateSnapshot(t.Context(), folder, first, last)
	awaitImport(t, p, err)
	for range 3 {
		p, err := of.CreateSnapshot(t.Context(), killed, first, last)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		p.Kill()
	}
	if _, err := os.Stat(filepath.Join(killed, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
		p, err := of.CreateSnapshot(t.Context(), killed, first, last)
		awaitImport(t, p, err)
	}
	want, got := folderContents(t, folder), folderContents(t, killed)
	if len(want) != len(got) {
		t.Errorf("%d files after kills, want %d", len(got), len(want))
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s is another after kills", name)
		}
	}
	return folder
}

func folderContents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

// loadSnapshot loads a snapshot from a web server. The process is killed at the first request,
// the next one at the second, and so on.
func loadSnapshot(t *testing.T, into node.Ashlar, genesis, folder, block string) {
	t.Helper()
	var left atomic.Int64
	reached := make(chan struct{}, 1)
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) == 0 {
			reached <- struct{}{}
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	for at := int64(1); ; at++ {
		left.Store(at)
		p, err := into.LoadSnapshot(t.Context(), genesis, server.URL, block)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-reached:
			p.Kill()
		case <-p.Done():
			awaitImport(t, p, nil)
			t.Logf("killed %d times", at-1)
			return
		}
	}
}

// searched is a page of a search for transactions.
type searched struct {
	Txs                 []struct{ Hash, BlockNumber string }
	FirstPage, LastPage bool
}

// compareSearches searches transactions of addresses from the head down. An Ashlar that begins
// with the state of a block finds those after it, and then says that there may be others.
func compareSearches(t *testing.T, chain *sample.Chain, whole, part *node.Client, first uint64) {
	t.Helper()
	const method, size = "ots_searchTransactionsBefore", 100
	some := 0
	for _, address := range chain.Accounts[:min(10, len(chain.Accounts))] {
		for block := uint64(0); ; {
			var want, got searched
			if err := whole.Call(t.Context(), &want, method, address, block, size); err != nil {
				t.Fatal(err)
			}
			before := func(tx struct{ Hash, BlockNumber string }) bool {
				return hexutil.MustDecodeUint64(tx.BlockNumber) <= first
			}
			want.Txs = slices.DeleteFunc(want.Txs, before)
			err := part.Call(t.Context(), &got, method, address, block, size)
			if len(want.Txs) == 0 {
				if err == nil || !strings.Contains(err.Error(), "pruned history unavailable") {
					t.Errorf("%s before block %d: %v, want an error about pruned history", address, block, err)
				}
				break
			}
			if err != nil || !slices.Equal(want.Txs, got.Txs) || got.LastPage {
				t.Errorf("%s before block %d: %d transactions, want %d; last page %t, %v", address, block, len(got.Txs), len(want.Txs), got.LastPage, err)
				break
			}
			some += len(got.Txs)
			block = hexutil.MustDecodeUint64(got.Txs[len(got.Txs)-1].BlockNumber)
		}
		err := part.Call(t.Context(), new(searched), "ots_searchTransactionsAfter", address, first-1, size)
		if err == nil || !strings.Contains(err.Error(), "pruned history unavailable") {
			t.Errorf("%s after block %d: %v, want an error about pruned history", address, first-1, err)
		}
	}
	if some == 0 {
		t.Error("no transactions were found")
	}
}
