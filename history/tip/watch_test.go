package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWatch has a second process see what the first one does with its tip.
func TestWatch(t *testing.T) {
	ctx := t.Context()
	store := openStore(t, vfs.NewMem())
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	watched, err := tip.Watch(ctx, store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want chain.Ref, moves bool) {
		t.Helper()
		moved := watched.Moved()
		if err := watched.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		head := watched.Forkchoice().Head
		if head.Ref() != want {
			t.Fatalf("head %s, expected %s", head.Ref(), want)
		}
		if want.Number > settled.Number {
			if got := last(t, head, store, want.Number); got != want.String() {
				t.Errorf("newest row %s, expected %s", got, want)
			}
		}
		select {
		case <-moved:
			if !moves {
				t.Error("the tip says that it moved")
			}
		default:
			if moves {
				t.Error("the tip does not say that it moved")
			}
		}
	}
	expect(settled, false)
	grow(t, writer, ref(11, 'a'), settled)
	expect(settled, false)
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	setHead(t, writer, ref(12, 'a'))
	expect(ref(12, 'a'), true)
	before := watched.Forkchoice().Head

	// A reorganization, then the settling of its first block, which drops the other branch.
	grow(t, writer, ref(11, 'b'), settled)
	setHead(t, writer, ref(11, 'b'))
	expect(ref(11, 'b'), true)
	if err := writer.Settled(ctx, ref(11, 'b')); err != nil {
		t.Fatal(err)
	}
	settled = ref(11, 'b')
	expect(settled, false)
	if watched.Has(ref(12, 'a').Hash) {
		t.Error("a branch that was dropped is still there")
	}
	if got := last(t, before, store, 12); got != ref(12, 'a').String() {
		t.Errorf("a branch that is held reads %s", got)
	}
	grow(t, writer, ref(12, 'b'), settled)
	setHead(t, writer, ref(12, 'b'))
	expect(ref(12, 'b'), true)

	// After a removal, the store must be opened again.
	b := store.NewBatch()
	b.SetPointer(kv.EpochPointer, binary.BigEndian.AppendUint64(nil, 2))
	if err := store.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := watched.Refresh(ctx); !errors.Is(err, tip.ErrRemoved) {
		t.Errorf("after a removal: %v, expected ErrRemoved", err)
	}
}

// A store from which rows are being removed is not watched: it would be served half removed until the
// removal is complete. The error says so, and a server serves its other networks meanwhile.
func TestWatchDuringRemoval(t *testing.T) {
	for name, after := range map[string]int{"begun before": 0, "begun in between": 1} {
		store := &removedFrom{openStore(t, vfs.NewMem()), after}
		_, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return ref(10, 'a'), nil })
		if !errors.Is(err, rows.ErrRewinding) || !rows.Incomplete(err) {
			t.Errorf("watch while rows are being removed, %s: %v, expected ErrRewinding", name, err)
		}
	}
}

// removedFrom is a store from which a removal begins after some reads of the epoch.
type removedFrom struct {
	kv.Store
	after int
}

func (r *removedFrom) Pointer(ctx context.Context, name string) ([]byte, error) {
	if name != kv.EpochPointer {
		return r.Store.Pointer(ctx, name)
	}
	r.after--
	if r.after >= 0 {
		return nil, kv.ErrNotFound
	}
	return binary.BigEndian.AppendUint64(nil, 1), nil
}
