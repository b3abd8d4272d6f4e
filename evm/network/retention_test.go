package network

import (
	"context"
	"errors"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/jsonrpc"
	"ashlar/kv"
)

// windowed moves the window of the network in a store at once.
func windowed(t *testing.T, store kv.Store, w retention.Window) error {
	t.Helper()
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return window.New(a, store, w, window.Options{Ancestors: 1, Work: 1}).Move(t.Context())
}

// TestRetention: a network with a window is sound at every moment of a removal, continues with
// later blocks, and says what it holds.
func TestRetention(t *testing.T) {
	genesis, blocks := ingesttest.Genesis(t), ingesttest.Chain(t)
	w := retention.Window{Proofs: 4, State: 8, History: 12}
	for cuts := 0; ; cuts += 3 + cuts/2 {
		store := ingesttest.Store(t)
		importBlocks(t, store, genesis, blocks[:30])
		err := windowed(t, &cut{store, cuts}, w)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		mustVerify(t, store)
		importBlocks(t, store, genesis, blocks[30:])
		if err := windowed(t, store, w); err != nil {
			t.Fatal(err)
		}
		mustVerify(t, store)
		if err != nil {
			continue
		}
		if cuts < 10 {
			t.Errorf("the removal has %d writes", cuts)
		}
		checkWindow(t, store, w)
		return
	}
}

// checkWindow checks what a network with a window says that it holds.
func checkWindow(t *testing.T, store kv.Store, w retention.Window) {
	t.Helper()
	entries := &Entries{Retention: w}
	n, err := Family{}.Open(t.Context(), store, entries, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Serve(t.Context(), family.Service{Name: "test"}); err != nil {
		t.Fatal(err)
	}
	status, err := n.Status(t.Context())
	first := func(kept retention.Span) uint64 { return ingesttest.ChainBlocks - uint64(kept) + 1 }
	if err != nil || status.First != first(w.History) || status.FirstState != first(w.State) || status.FirstProof != first(w.Proofs) {
		t.Errorf("%+v, %v", status, err)
	}
	if kept := status.Retention; kept == nil || kept.Window != w || kept.Problem != "" {
		t.Errorf("retention: %+v", kept)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := n.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A network without a tip of executed blocks has a window too, but a reader does not remove what
// is older: its store is another process's.
func TestCheckedReaderRemovesNothing(t *testing.T) {
	genesis, blocks, receipts := manyBlocks(t)
	node := startNode(t, genesis, receipts, blocks)
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, blocks[1:3])
	for _, reading := range []bool{false, true} {
		entries := &Entries{Checked: checkState, Upstream: nodesOf(node), Quorum: 1, Retention: retention.Window{State: 1, History: 1}}
		n, err := Family{}.Open(t.Context(), store, entries, reading)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Serve(t.Context(), family.Service{Name: "checked", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }}); err != nil {
			t.Fatal(err)
		}
		status, err := n.Status(t.Context())
		if err != nil || (status.Retention == nil) != reading {
			t.Errorf("reading: %t: %+v, %v", reading, status.Retention, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
