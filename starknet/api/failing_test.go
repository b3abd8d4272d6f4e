package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
)

var errRead = errors.New("the disk is broken")

// failing is a store of which one read fails, and all later ones succeed. It is for one goroutine.
type failing struct {
	kv.Store
	left int // reads before the one that fails; negative: it has failed, or none is to
}

func (f *failing) read() error {
	f.left--
	if f.left == -1 {
		return errRead
	}
	return nil
}

func (f *failing) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	if err := f.read(); err != nil {
		return dst, err
	}
	return f.Store.Get(ctx, t, partition, sort, dst)
}

func (f *failing) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if err := f.read(); err != nil {
		return dst, 0, err
	}
	return f.Store.Newest(ctx, t, partition, at, dst)
}

func (f *failing) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	return &failingCursor{Cursor: f.Store.Scan(ctx, t, partition, from, to), store: f}
}

type failingCursor struct {
	kv.Cursor
	store *failing
	err   error
}

func (c *failingCursor) may() bool {
	if c.err == nil {
		c.err = c.store.read()
	}
	return c.err == nil
}

func (c *failingCursor) Next() bool            { return c.may() && c.Cursor.Next() }
func (c *failingCursor) Seek(sort uint64) bool { return c.may() && c.Cursor.Seek(sort) }
func (c *failingCursor) Close() error          { return errors.Join(c.err, c.Cursor.Close()) }

// TestFailedReads: if any one read of the store fails, the question fails. It is never answered with
// a part.
func TestFailedReads(t *testing.T) {
	blocks := next(made(4, 100), 30)
	n := newNetwork(t, blocks...)
	longest := &blocks[0].Transactions[0]
	for _, block := range blocks {
		for i := range block.Transactions {
			if one := &block.Transactions[i]; len(one.Receipt.Events) > len(longest.Receipt.Events) {
				longest = one
			}
		}
	}
	p, err := n.pageOf(t, "", 7, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, params string }{
		{"starknet_getBlockWithTxHashes", `[{"block_number":112}]`},
		{"starknet_getBlockWithTxHashes", fmt.Sprintf(`[{"block_hash":%q}]`, blocks[12].Hash)},
		{"starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, longest.Hash)},
		{"rollup_getEvents", `[{"from_block":{"block_number":112},"to_block":{"block_number":112},"chunk_size":1024}]`},
		{"rollup_getEvents", fmt.Sprintf(`[{"from_block":{"block_hash":%q},"chunk_size":1024}]`, blocks[12].Hash)},
		{"rollup_getEvents", `[{"chunk_size":7,"continuation_token":"` + *p.Token + `"}]`},
	} {
		store := &failing{Store: n.store}
		reads := 0
		for ; ; reads++ {
			got, err := askFailing(t, store, reads, c.method, c.params)
			if store.left >= 0 { // all reads succeeded
				if err != nil {
					t.Errorf("%s%s: %v", c.method, c.params, err)
				}
				break
			}
			if !errors.Is(err, errRead) {
				t.Errorf("%s%s, read %d fails: %v, %.300s, want %v", c.method, c.params, reads, err, got, errRead)
			}
		}
		if reads == 0 {
			t.Errorf("%s%s reads nothing", c.method, c.params)
		}
	}
}

// askFailing asks a method of a network that caches nothing yet, and of whose reads one fails.
func askFailing(t *testing.T, store *failing, reads int, method, params string) ([]byte, error) {
	t.Helper()
	store.left = -1
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	store.left = reads
	verification := weakening(jsonrpc.Executed) // some blocks are read for it alone
	ctx := context.WithValue(t.Context(), jsonrpc.VerifierKey{}, &verification)
	return handlersOf(t, New(query.NewChain(a, noTip), Usual()))[method](ctx, []byte(params), nil)
}

// weakening implements jsonrpc.Verifier.
type weakening jsonrpc.Verification

func (w *weakening) Weaken(to jsonrpc.Verification) { *w = min(*w, weakening(to)) }
