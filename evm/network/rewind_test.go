package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// importBlocks imports blocks into the network in a store, or makes it.
func importBlocks(t *testing.T, store kv.Store, genesis *core.Genesis, blocks []*types.Block) {
	t.Helper()
	place := family.Place{Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
	i, err := create(t.Context(), place, kv.Options{}, genesis, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.importer.Import(t.Context(), ingesttest.SourceOf(blocks)); err != nil {
		t.Fatal(err)
	}
}

// everyRow returns all rows of a store, of whatever table: also of one that the list of
// tables lacks.
func everyRow(t *testing.T, store kv.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for id := 1; id < 1<<8; id++ {
		table := &kv.Table{ID: byte(id), Name: "any", Kind: kv.List}
		for row, err := range store.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%#x %x %#x", id, row.Partition, row.Sort)] = string(row.Value)
		}
	}
	return all
}

// sameRows compares all rows of two stores.
func sameRows(t *testing.T, what string, got, want kv.Store) {
	t.Helper()
	a, b := everyRow(t, got), everyRow(t, want)
	for key, value := range a {
		if other, there := b[key]; !there || other != value {
			t.Errorf("%s: row %s is %x, want %x (%v)", what, key, value, other, there)
		}
		delete(b, key)
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		t.Errorf("%s: row %s is missing", what, key)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func mustRewind(t *testing.T, store kv.Store, to uint64) rewind.Done {
	t.Helper()
	done, err := Family{}.Rewind(t.Context(), store, to, new(audit.Progress))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func mustVerify(t *testing.T, store kv.Store) {
	t.Helper()
	verdict, err := Family{}.Verify(t.Context(), store, family.Verification{To: audit.Head, Full: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if outcome := verdict.Outcome(); !outcome.Sound {
		t.Fatal(outcome.Finding.Text())
	}
}

// TestRewind takes a chain back to each of its blocks. What is left, and what there is
// after the import of another chain, is byte for byte what a new import of the same blocks
// makes.
func TestRewind(t *testing.T) {
	genesis, right := ingesttest.Crossing(t)
	whole := ingesttest.Store(t)
	importBlocks(t, whole, genesis, right)
	fresh := ingesttest.Store(t)
	for to := range ingesttest.CrossingBlocks + 1 {
		importBlocks(t, fresh, genesis, right[:to])
		wrong := ingesttest.Diverging(t, to)
		store := ingesttest.Store(t)
		importBlocks(t, store, genesis, wrong)
		before := len(everyRow(t, store))
		done := mustRewind(t, store, uint64(to))
		if removed := before - len(everyRow(t, store)); done.Rows != uint64(removed) {
			t.Errorf("back to block %d: %d rows are gone, it says %d", to, removed, done.Rows)
		}
		if last := wrong[len(wrong)-1]; done.From.Hash != last.Hash() || done.To.Number != uint64(to) {
			t.Errorf("back to block %d: it says from %s to %s", to, done.From, done.To)
		}
		sameRows(t, fmt.Sprintf("back to block %d", to), store, fresh)
		mustVerify(t, store)
		importBlocks(t, store, genesis, right[to:])
		sameRows(t, fmt.Sprintf("another chain from block %d on", to), store, whole)
	}
}

// cut is a store whose writes fail after a while, as if the process had been killed.
type cut struct {
	kv.Store
	left int
}

var errCut = errors.New("cut off")

func (c *cut) may() error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return nil
}

func (c *cut) Write(ctx context.Context, b kv.Batch) error {
	if err := c.may(); err != nil {
		return err
	}
	return c.Store.Write(ctx, b)
}

func (c *cut) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if err := c.may(); err != nil {
		return err
	}
	return c.Store.CompareAndSet(ctx, name, old, value)
}

func (c *cut) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	if err := c.may(); err != nil {
		return err
	}
	return c.Store.Drop(ctx, t, partition)
}

// unsettle puts a block above the settled one into the tip.
func unsettle(t *testing.T, store kv.Store, last *types.Block) {
	t.Helper()
	above, err := tip.Open(t.Context(), store, archive.Tables(), chain.Ref{Number: last.NumberU64(), Hash: last.Hash()})
	if err != nil {
		t.Fatal(err)
	}
	ref := chain.Ref{Number: last.NumberU64() + 1, Hash: [32]byte{9}}
	if err := above.Add(t.Context(), ref, last.Hash(), new(tip.Rows)); err != nil {
		t.Fatal(err)
	}
	if err := above.SetHead(t.Context(), ref.Hash, ref, ref); err != nil {
		t.Fatal(err)
	}
}

// TestRewindCut cuts a rewind off after each of its writes. The network is then either as
// it was, or refused by everything but another rewind, which completes it.
func TestRewindCut(t *testing.T) {
	const to = 4
	genesis, blocks := ingesttest.Crossing(t)
	fresh := ingesttest.Store(t)
	importBlocks(t, fresh, genesis, blocks[:to])
	for writes := 0; ; writes++ {
		store := ingesttest.Store(t)
		importBlocks(t, store, genesis, blocks)
		unsettle(t, store, blocks[len(blocks)-1])
		_, err := Family{}.Rewind(t.Context(), &cut{store, writes}, to, nil)
		if err == nil {
			if writes < len(archive.Tables()) {
				t.Errorf("the rewind took %d writes", writes)
			}
			return
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		_, removing, err := kv.Epoch(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if !removing {
			if settled, _, _ := rows.Settled(t.Context(), store); settled.Number != uint64(len(blocks)) {
				t.Errorf("after %d writes: settled is %d, and no rewind is under way", writes, settled.Number)
			}
			mustVerify(t, store)
		} else {
			refused(t, store, genesis)
			if _, err := (Family{}).Rewind(t.Context(), store, to+1, nil); !errors.Is(err, rewind.ErrUnderWay) {
				t.Errorf("after %d writes: rewind to a later block: %v, want ErrUnderWay", writes, err)
			}
		}
		mustRewind(t, store, to)
		sameRows(t, fmt.Sprintf("cut off after %d writes", writes), store, fresh)
		n, err := Family{}.Open(t.Context(), store, &Entries{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if status, err := n.Status(t.Context()); err != nil || status.Head != to || status.Settled != to {
			t.Errorf("cut off after %d writes: status %+v, %v", writes, status, err)
		}
	}
}

// refused checks that a network cannot be used.
func refused(t *testing.T, store kv.Store, genesis *core.Genesis) {
	t.Helper()
	_, opening := Family{}.Open(t.Context(), store, &Entries{}, false)
	_, verifying := Family{}.Verify(t.Context(), store, family.Verification{To: audit.Head}, nil)
	place := family.Place{Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
	_, importing := create(t.Context(), place, kv.Options{}, genesis, nil)
	for what, err := range map[string]error{
		"Accept": Family{}.Accept(t.Context(), store), "Open": opening, "Verify": verifying, "Import": importing,
	} {
		if !errors.Is(err, rows.ErrRewinding) {
			t.Errorf("%s: %v, want ErrRewinding", what, err)
		}
	}
}

// TestRewindFurther completes an interrupted rewind by a longer one.
func TestRewindFurther(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	store, fresh := ingesttest.Store(t), ingesttest.Store(t)
	importBlocks(t, fresh, genesis, blocks[:2])
	importBlocks(t, store, genesis, blocks)
	if _, err := (Family{}).Rewind(t.Context(), &cut{store, 5}, 6, nil); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	mustRewind(t, store, 2)
	sameRows(t, "back to block 2", store, fresh)
	for _, to := range []uint64{3, ^uint64(0)} {
		if _, err := (Family{}).Rewind(t.Context(), store, to, nil); !errors.Is(err, rewind.ErrNotSettled) {
			t.Errorf("rewind to block %d: %v, want ErrNotSettled", to, err)
		}
	}
	if epoch, removing, err := kv.Epoch(t.Context(), store); epoch != 2 || removing || err != nil {
		t.Errorf("the epoch is %d, %v, %v, want 2", epoch, removing, err)
	}
}
