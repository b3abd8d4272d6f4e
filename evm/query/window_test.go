package query

import (
	"context"
	"errors"
	"fmt"
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
		return c.chain.archive.SetFirst(t.Context(), archive.Extent{Blocks: 20, State: 30, Tries: 30})
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

// movingRows calls move before the read of the trace index with a number, from 1.
type movingRows struct {
	kv.Reader
	before, reads int
	move          func()
}

func (m *movingRows) read(t *kv.Table) {
	if t != archive.NamedTables().TracePostings {
		return
	}
	if m.reads++; m.reads == m.before {
		m.move()
	}
}

func (m *movingRows) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	m.read(t)
	return m.Reader.Scan(ctx, t, partition, from, to)
}

func (m *movingRows) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	m.read(t)
	return m.Reader.Newest(ctx, t, partition, at, dst)
}

// TestTransactionsWhileTheWindowMoves: an address sends in block 2, receives in block 3 and sends
// in block 30. The window moves after the blocks that it sent in were read, and before those that it
// received in: no answer has only one of the removed blocks.
func TestTransactionsWhileTheWindowMoves(t *testing.T) {
	one := common.Address{1}
	for name, search := range map[string]func(*View, *movingRows) ([]BlockTransactions, bool, error){
		"after": func(v *View, rows *movingRows) ([]BlockTransactions, bool, error) {
			rows.before = 1 // the second scan begins with the first block as it is then
			return v.TransactionsAfter(t.Context(), one, 1, 10)
		},
		"before": func(v *View, rows *movingRows) ([]BlockTransactions, bool, error) {
			rows.before = 2
			return v.TransactionsBefore(t.Context(), one, 29, 10)
		},
	} {
		view, rows := newTraceChain(t, one)
		rows.reads = 1000
		if found, _, err := search(view, rows); err != nil || len(found) < 2 {
			t.Fatalf("%s: %+v, %v, want those of blocks 2 and 3", name, found, err)
		}
		rows.reads = 0
		found, _, err := search(view, rows)
		wantPruned(t, fmt.Sprintf("%s: %+v", name, found), err, 20)
	}
}

// newTraceChain returns a view of a chain in which an address has transactions, and its rows, which
// move the window.
func newTraceChain(t *testing.T, one common.Address) (*View, *movingRows) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "traces", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int)}, archive.TraceIndex)
	if err != nil {
		t.Fatal(err)
	}
	var parent common.Hash
	for number := range uint64(40) {
		trace := evm.Trace{From: common.Address{2}, To: common.Address{2}, Roles: evm.Sender | evm.Receiver}
		switch number {
		case 2, 30:
			trace.From = one
		case 3:
			trace.To = one
		}
		delta := &evm.Delta{Traces: &evm.Traces{List: []evm.Trace{trace}, Ends: []int{1}}}
		delta.Block = types.NewBlockWithHeader(&types.Header{Number: new(big.Int).SetUint64(number), ParentHash: parent, Difficulty: new(big.Int)})
		parent = delta.Block.Hash()
		if err := a.Append(t.Context(), delta); err != nil {
			t.Fatal(err)
		}
	}
	settled, _ := a.Settled()
	rows := &movingRows{Reader: a.Rows(), move: func() {
		if err := a.SetFirst(t.Context(), archive.Extent{Blocks: 10, State: 20, Tries: 20}); err != nil {
			t.Error(err)
		}
	}}
	return &View{chain: NewChain(a, nil, nil), history: a.Over(rows, settled.Number), head: settled}, rows
}
