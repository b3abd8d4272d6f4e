package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// recorded shows the blocks of an archive as those of a history file.
type recorded struct {
	*stateOf
	first, last, next uint64
}

func (r *recorded) First() uint64 { return r.first }

func (r *recorded) Header(number uint64) (*types.Header, common.Hash) {
	if number < r.first || number > r.last {
		return nil, common.Hash{}
	}
	header, err := r.archive.Header(context.Background(), number)
	if err != nil {
		panic(err)
	}
	return header.Header, header.Hash
}

func (r *recorded) NextRecorded() (*types.Block, types.Receipts, []byte, error) {
	header, err := r.archive.Header(context.Background(), r.next)
	if err != nil {
		return nil, nil, nil, err
	}
	block, receipts, accessList, err := r.Block(header.Hash, r.next)
	r.next++
	return block, receipts, accessList, err
}

// TestAddOlder: blocks before the first one come in parts, the newest first. Each part is
// visible when all of it is there, and in the end all rows of blocks are those of an
// archive with the whole chain.
func TestAddOlder(t *testing.T) {
	t.Cleanup(ingest.SetStartBlocks(3))
	s := newStarter(t)
	store := ingesttest.Store(t)
	a, err := s.start(store)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(s.genesis.Config)
	if err != nil {
		t.Fatal(err)
	}
	add := func(first, last uint64, change func(any) error) error {
		source := &recorded{&stateOf{archive: s.source.archive, head: s.source.head, change: change}, first, last, first}
		return ingest.AddOlder(t.Context(), a, executor, source)
	}
	sound := func(first uint64) {
		t.Helper()
		if got := a.Extent(); got != (archive.Extent{Blocks: first, State: startNumber}) {
			t.Errorf("it begins with %+v, want block %d", got, first)
		}
		report, err := verify.Run(t.Context(), store, verify.Options{To: audit.Head, Full: true}, nil)
		if err != nil || !report.Sound {
			t.Errorf("verify: %v, %+v", err, report.Finding)
		}
	}
	sound(22)
	if err := add(5, 20, nil); !errors.Is(err, ingest.ErrGap) {
		t.Errorf("blocks that end too early: %v", err)
	}
	stop := errors.New("stopped")
	items := 0
	interrupt := func(any) error {
		if items++; items > 6 {
			return stop
		}
		return nil
	}
	if err := add(10, 23, interrupt); !errors.Is(err, stop) {
		t.Errorf("interrupted: %v", err)
	}
	sound(22)
	damage := func(item any) error {
		if b, ok := item.(*blockItem); ok && len(b.receipts) > 0 {
			b.receipts[0].CumulativeGasUsed++
		}
		return nil
	}
	if check := (*execute.CheckError)(nil); !errors.As(add(10, 23, damage), &check) {
		t.Error("a damaged receipt was accepted")
	}
	sound(22)
	if err := add(10, 23, nil); err != nil {
		t.Fatal(err)
	}
	sound(10)
	if err := add(0, 9, nil); err != nil {
		t.Fatal(err)
	}
	sound(0)
	continueWith(t, a, s.genesis, ingesttest.Chain(t)[startNumber:])
	tables := archive.NamedTables()
	for _, table := range append(tables.Own(), tables.Derived()...) {
		if want, got := rowsOf(t, s.whole, table), rowsOf(t, store, table); !maps.Equal(want, got) {
			t.Errorf("%s: %d rows, want %d, or others", table.Name, len(got), len(want))
		}
	}
}

func rowsOf(t *testing.T, store kv.Store, table *kv.Table) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for row, err := range store.Walk(t.Context(), table, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%x at %d", row.Partition, row.Sort)] = string(row.Value)
	}
	return all
}
