package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncing is a store that counts the writes since its last Sync.
type syncing struct {
	kv.Store
	writes int
}

func (s *syncing) Write(ctx context.Context, batch kv.Batch) error {
	s.writes++
	return s.Store.Write(ctx, batch)
}

func (s *syncing) Sync(ctx context.Context) error {
	s.writes = 0
	return s.Store.Sync(ctx)
}

// TestChangesAreDurable: blocks and heads are durable when the method that sets them returns.
func TestChangesAreDurable(t *testing.T) {
	store := &syncing{Store: openStore(t, vfs.NewMem())}
	defer store.Close()
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	for what, change := range []func(){
		func() { grow(t, writer, ref(11, 'a'), settled) },
		func() { setHead(t, writer, ref(11, 'a')) },
		func() {
			if err := writer.Settled(t.Context(), ref(11, 'a')); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if change(); store.writes > 0 {
			t.Errorf("%d writes of change %d are not durable", store.writes, what)
		}
	}
}

// losing is a store whose writes are applied, while their answers can be lost.
type losing struct {
	kv.Store
	lost bool
}

func (s *losing) Write(ctx context.Context, batch kv.Batch) error {
	err := s.Store.Write(ctx, batch)
	if err == nil && s.lost {
		err = errors.New("written, but the answer was lost")
	}
	return err
}

// TestSequenceOfALostWrite: readers order heads by a number. That of a write whose answer was lost is not used for another tree.
func TestSequenceOfALostWrite(t *testing.T) {
	store := &losing{Store: openStore(t, vfs.NewMem())}
	defer store.Close()
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	grow(t, writer, ref(11, 'a'), settled)
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	setHead(t, writer, ref(11, 'a'))
	sequence := func() uint64 {
		t.Helper()
		value, err := store.Pointer(t.Context(), "tip")
		if err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint64(value[len(value)-8:])
	}
	store.lost = true
	if err := writer.SetHead(t.Context(), ref(12, 'a').Hash, chain.Ref{}, chain.Ref{}); err == nil {
		t.Fatal("a head that may not be stored is set")
	}
	lost := sequence()
	store.lost = false
	grow(t, writer, ref(12, 'b'), ref(11, 'a')) // the head is still 11
	if got := sequence(); got <= lost {
		t.Errorf("the tree with the head 11 has number %d, that with the head 12 had %d", got, lost)
	}
	store.lost = false
	before := sequence()
	writer = openTip(t, store, settled)
	setHead(t, writer, ref(12, 'b'))
	if got := sequence(); got <= before {
		t.Errorf("after a restart, the tree with the head 12 has number %d, the one before had %d", got, before)
	}
}

// TestFailedChangesAreNotSeen: what may not be stored cannot be seen.
func TestFailedChangesAreNotSeen(t *testing.T) {
	below, of, _ := withHead(t)
	grow(t, of, ref(12, 'a'), ref(11, 'a'))
	for operation := range 2 { // Write and Sync
		store := &kvtest.Failing{Store: below, Left: -1}
		of := openTip(t, store, ref(10, 'a'))
		store.Left = operation
		if err := of.Add(t.Context(), ref(11, 'b'), ref(10, 'a').Hash, new(tip.Rows)); !errors.Is(err, kvtest.ErrBroken) {
			t.Fatal(err)
		}
		if of.Has(ref(11, 'b').Hash) || of.Len() != 2 {
			t.Errorf("operation %d fails, and the block is there; %d blocks, expected 2", operation, of.Len())
		}
		store.Left = operation
		if err := of.SetHead(t.Context(), ref(12, 'a').Hash, chain.Ref{}, chain.Ref{}); !errors.Is(err, kvtest.ErrBroken) {
			t.Fatal(err)
		}
		if head := of.Forkchoice().Head.Ref(); head != ref(11, 'a') {
			t.Errorf("operation %d fails, and the head is %s", operation, head)
		}
		if err := of.Overtaken(t.Context(), ref(10, 'a')); err != nil { // writes the tip as it is seen
			t.Fatal(err)
		}
	}
}

// TestSafeAndFinalized: they move without the head, are signaled and durable, and stay while another call leaves them out.
func TestSafeAndFinalized(t *testing.T) {
	store, of, settled := withHead(t)
	var none chain.Ref
	for i, c := range []struct {
		safe, finalized chain.Ref // as they are set
		now             [2]chain.Ref
		moves           bool
	}{
		{none, none, [2]chain.Ref{none, none}, false},
		{settled, none, [2]chain.Ref{settled, none}, true},
		{none, settled, [2]chain.Ref{settled, settled}, true},
		{settled, settled, [2]chain.Ref{settled, settled}, false},
		{none, none, [2]chain.Ref{settled, settled}, false},
		{ref(11, 'a'), none, [2]chain.Ref{ref(11, 'a'), settled}, true},
		{none, ref(11, 'a'), [2]chain.Ref{ref(11, 'a'), ref(11, 'a')}, true},
	} {
		moved := of.Moved()
		if err := of.SetHead(t.Context(), ref(11, 'a').Hash, c.safe, c.finalized); err != nil {
			t.Fatal(err)
		}
		for what, of := range map[string]*tip.Tip{"then": of, "after a restart": openTip(t, store, settled)} {
			if f := of.Forkchoice(); [2]chain.Ref{f.Safe, f.Finalized} != c.now {
				t.Errorf("change %d, %s: safe %s and finalized %s, expected %s", i, what, f.Safe, f.Finalized, c.now)
			}
		}
		select {
		case <-moved:
			if !c.moves {
				t.Errorf("change %d moves nothing, but is signaled", i)
			}
		default:
			if c.moves {
				t.Errorf("change %d is not signaled", i)
			}
		}
	}
}

// TestDamagedPointer: a pointer of another length is reported, not read in part.
func TestDamagedPointer(t *testing.T) {
	for _, c := range []struct {
		length int
		whole  bool
	}{
		{0, false}, {8, false}, {40, false}, {48, false}, {119, false}, {120, true}, {121, false}, {127, false}, {128, true}, {129, false},
	} {
		store := openStore(t, vfs.NewMem())
		b := store.NewBatch()
		b.SetPointer("tip", make([]byte, c.length))
		if err := store.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		_, opened := tip.Open(t.Context(), store, allTables(), ref(10, 'a'))
		_, watched := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return ref(10, 'a'), nil })
		for what, err := range map[string]error{"Open": opened, "Watch": watched} {
			if (err == nil) != c.whole || err != nil && !errors.Is(err, tip.ErrCorrupt) {
				t.Errorf("%s with a pointer of %d bytes: %v", what, c.length, err)
			}
		}
		store.Close()
	}
}
