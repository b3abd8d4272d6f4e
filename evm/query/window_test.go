package query

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/paging"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// wantPruned checks that an error names the first block.
func wantPruned(t *testing.T, what string, err error, first uint64) {
	t.Helper()
	if pruned := (*archive.Pruned)(nil); !errors.As(err, &pruned) || pruned.First != first {
		t.Errorf("%s: %v, want a Pruned that names block %d", what, err, first)
	}
}

// TestLogPageBehindTheWindow: a page is refused if its range begins below the first block, also
// if that moves while the page is read.
func TestLogPageBehindTheWindow(t *testing.T) {
	c := newLogChain(t, 6, 60)
	all := paging.Range{To: c.head.Number, Size: len(c.logs)}
	moved := false
	_, err := c.LogPage(t.Context(), &Filter{Addresses: []common.Address{{}}}, all, func(*Log) error {
		if moved {
			return nil
		}
		moved = true
		return c.chain.archive.SetFirst(t.Context(), archive.Extent{Blocks: 20, State: 30})
	})
	wantPruned(t, "moved", err, 20)
	visit := func(*Log) error { return nil }
	for _, f := range []*Filter{{}, {Addresses: []common.Address{{}}}} {
		for _, begin := range []uint64{0, 1, 19} {
			below := all
			below.Begin.Block = begin
			_, err := c.LogPage(t.Context(), f, below, visit)
			wantPruned(t, "below", err, 20)
		}
		within := all
		within.Begin.Block = 20
		if _, err := c.LogPage(t.Context(), f, within, visit); err != nil {
			t.Errorf("from the first block on: %v", err)
		}
	}
}

// movingRows calls move at the first scan of the trace index.
type movingRows struct {
	kv.Reader
	move func()
}

func (m *movingRows) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	if t == archive.NamedTables().TracePostings && m.move != nil {
		m.move()
		m.move = nil
	}
	return m.Reader.Scan(ctx, t, partition, from, to)
}

// TestTransactionsAfterWhileTheWindowMoves: an address receives in block 3 and sends in block 30.
// If the window moves between these blocks while they are looked for, there is no answer.
func TestTransactionsAfterWhileTheWindowMoves(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "traces", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a, err := archive.Create(t.Context(), store, &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int)}, archive.TraceIndex)
	if err != nil {
		t.Fatal(err)
	}
	one, other := common.Address{1}, common.Address{2}
	var parent common.Hash
	for number := range uint64(40) {
		delta := &evm.Delta{Traces: &evm.Traces{}}
		trace := evm.Trace{From: other, To: other, Roles: evm.Sender | evm.Receiver}
		switch number {
		case 3:
			trace.To = one
		case 30:
			trace.From = one
		}
		delta.Traces.List, delta.Traces.Ends = append(delta.Traces.List, trace), []int{1}
		delta.Block = types.NewBlockWithHeader(&types.Header{Number: new(big.Int).SetUint64(number), ParentHash: parent, Difficulty: new(big.Int)})
		parent = delta.Block.Hash()
		if err := a.Append(t.Context(), delta); err != nil {
			t.Fatal(err)
		}
	}
	settled, _ := a.Settled()
	rows := &movingRows{Reader: a.Rows()}
	view := &View{chain: NewChain(a, nil, nil), history: a.Over(rows, settled.Number), head: settled}
	if found, _, err := view.TransactionsAfter(t.Context(), one, 1, 10); err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v, want those of blocks 3 and 30", found, err)
	}
	rows.move = func() {
		if err := a.SetFirst(t.Context(), archive.Extent{Blocks: 10, State: 20}); err != nil {
			t.Error(err)
		}
	}
	_, _, err = view.TransactionsAfter(t.Context(), one, 1, 10)
	wantPruned(t, "moved", err, 20)
}
