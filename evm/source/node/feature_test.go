package node_test

import (
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// asked counts requests that only some nodes support.
type asked struct{ blocks, receipts, batches atomic.Int64 }

func (a *asked) counts() map[string]bool {
	return map[string]bool{"blocks": a.blocks.Swap(0) > 0, "receipts": a.receipts.Swap(0) > 0, "batches": a.batches.Swap(0) > 0}
}

// TestFeaturesAreLearnedAgain: a client does not repeat requests that a node does not support, until it
// identifies the node again, which may have been replaced.
func TestFeaturesAreLearnedAgain(t *testing.T) {
	blocks := makeChain(t, 4)
	var old atomic.Bool
	old.Store(true)
	var got asked
	between := func(to http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, next := readBody(r), to
			note := func(count *atomic.Int64) {
				count.Add(1)
				if old.Load() {
					next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not here", http.StatusForbidden) })
				}
			}
			if strings.HasPrefix(body, "[") {
				note(&got.batches)
			}
			if strings.Contains(body, "debug_getRawBlock") {
				note(&got.blocks)
			}
			if strings.Contains(body, "debug_getRawReceipts") {
				note(&got.receipts)
			}
			next.ServeHTTP(w, r)
		})
	}
	receipts := func(common.Hash) types.Receipts { return types.Receipts{} }
	_, client := start(t, fakenode.Options{Raw: true, Receipts: receipts, Between: between}, false, blocks)
	ask := func(when string, want bool) {
		t.Helper()
		fetched, err := client.Blocks(t.Context(), 1, 2)
		if err != nil || len(fetched) != 2 {
			t.Fatalf("%s: %d blocks, %v", when, len(fetched), err)
		}
		of, err := client.Receipts(t.Context(), []common.Hash{blocks[1].Hash(), blocks[2].Hash()})
		if err != nil || len(of) != 2 {
			t.Fatalf("%s: receipts of %d blocks, %v", when, len(of), err)
		}
		if asked, all := got.counts(), (map[string]bool{"blocks": want, "receipts": want, "batches": want}); !maps.Equal(asked, all) {
			t.Errorf("%s: asked %v, want %v", when, asked, all)
		}
	}
	ask("at first", true)
	ask("a node that is known", false)
	old.Store(false)
	if _, _, err := client.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask("a node that was replaced", true)
	ask("the new node that is known", true)
}
