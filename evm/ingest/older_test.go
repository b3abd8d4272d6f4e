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
	"ashlar/internal/raced"
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
		_, err := ingest.AddOlder(t.Context(), a, executor, source)
		return err
	}
	sound := func(first uint64) {
		t.Helper()
		if got := a.Extent(); got != (archive.Extent{Blocks: first, State: startNumber, Tries: startNumber}) {
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
	sameBlockRows(t, s, store)
}

// cut is a store whose process is killed after a number of writes.
type cut struct {
	kv.Store
	left int
}

var errCut = errors.New("cut off")

func (c *cut) Write(ctx context.Context, b kv.Batch) error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return c.Store.Write(ctx, b)
}

// TestAddOlderKilled kills an addition at each of its writes: its blocks are all visible or none
// is. Then fewer blocks are added, so the pointer to the lowest rows that may be there stays
// below the first block, and then all others.
func TestAddOlderKilled(t *testing.T) {
	raced.Skip(t)
	t.Cleanup(ingest.SetStartBlocks(3))
	s := newStarter(t)
	executor, err := execute.New(s.genesis.Config)
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for killed := true; killed; kills++ {
		disk := ingesttest.Store(t)
		if _, err := s.start(disk); err != nil {
			t.Fatal(err)
		}
		add := func(store kv.Store, first, last uint64) error {
			a, err := archive.Open(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ingest.AddOlder(t.Context(), a, executor, &recorded{s.source, first, last, first})
			return err
		}
		check := func(first, lowest uint64) {
			t.Helper()
			a, err := archive.Open(t.Context(), disk)
			if err != nil {
				t.Fatal(err)
			}
			under, err := a.OlderUnder(t.Context())
			if got := a.Extent().Blocks; err != nil || got != first || under != lowest {
				t.Errorf("killed at write %d: it begins with block %d, rows with %d, %v, want %d and %d", kills, got, under, err, first, lowest)
			}
			report, err := verify.Run(t.Context(), disk, verify.Options{To: audit.Head, Full: true}, nil)
			if err != nil || !report.Sound {
				t.Errorf("killed at write %d: verify: %v, %+v", kills, err, report.Finding)
			}
		}
		err := add(&cut{disk, kills}, 5, 21)
		if killed = errors.Is(err, errCut); !killed && err != nil {
			t.Fatal(err)
		}
		switch {
		case !killed:
			check(5, 5)
		case kills == 0:
			check(22, 22)
		default:
			check(22, 5)
		}
		if killed {
			lowest := uint64(5)
			if kills == 0 {
				lowest = 10
			}
			if err := add(disk, 10, 21); err != nil {
				t.Fatal(err)
			}
			check(10, lowest)
			if err := add(disk, 0, 9); err != nil {
				t.Fatal(err)
			}
		} else if err := add(disk, 0, 4); err != nil {
			t.Fatal(err)
		}
		check(0, 0)
		a, err := archive.Open(t.Context(), disk)
		if err != nil {
			t.Fatal(err)
		}
		continueWith(t, a, s.genesis, ingesttest.Chain(t)[startNumber:])
		sameBlockRows(t, s, disk)
	}
	if kills < 4 {
		t.Errorf("the addition has %d writes, want 3 or more", kills-1)
	}
}

// sameBlockRows compares the rows of blocks with those of the whole archive.
func sameBlockRows(t *testing.T, s *starter, store kv.Store) {
	t.Helper()
	tables := archive.NamedTables()
	for _, table := range append(tables.Own(), tables.Derived()...) {
		want, got := rowsOf(t, s.whole, table), rowsOf(t, store, table)
		if !maps.Equal(want, got) {
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
