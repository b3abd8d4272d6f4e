package tip_test

import (
	"encoding/binary"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
)

// TestOvertaken: blocks that do not descend from the block that the archive has are discarded. The head stays if it descends
// from it.
func TestOvertaken(t *testing.T) {
	for _, c := range []struct{ by, head chain.Ref }{
		{ref(10, 'a'), ref(12, 'a')},
		{ref(11, 'a'), ref(12, 'a')},
		{ref(11, 'b'), ref(11, 'b')}, // a block of the tip, on another branch
		{ref(12, 'a'), ref(12, 'a')},
		{ref(12, 'x'), ref(12, 'x')}, // a block that the tip does not have
		{ref(30, 'x'), ref(30, 'x')},
	} {
		store, of, settled := withHead(t)
		grow(t, of, ref(12, 'a'), ref(11, 'a'))
		grow(t, of, ref(11, 'b'), settled)
		setHead(t, of, ref(12, 'a'))
		if err := of.Overtaken(t.Context(), ref(9, 'a')); err == nil {
			t.Error("a block below the settled one overtakes it")
		}
		if err := of.Overtaken(t.Context(), c.by); err != nil {
			t.Fatal(err)
		}
		for what, of := range map[string]*tip.Tip{"then": of, "after a restart": openTip(t, store, c.by)} {
			if head := of.Forkchoice().Head; head.Ref() != c.head || head.Settled() != c.by {
				t.Errorf("overtaken by %s, %s: head %s on %s, expected %s", c.by, what, head.Ref(), head.Settled(), c.head)
			}
		}
	}
}

// TestClear: nothing of a tip is left, whatever its pointer says, and trees that are made later have later numbers.
func TestClear(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		store, of, settled := withHead(t)
		setHead(t, of, settled)
		setHead(t, of, ref(11, 'a'))
		sequence := func() uint64 {
			t.Helper()
			value, err := store.Pointer(t.Context(), "tip")
			if err != nil {
				t.Fatal(err)
			}
			return binary.BigEndian.Uint64(value[len(value)-8:])
		}
		before := sequence()
		if damaged {
			batch := store.NewBatch()
			batch.SetPointer("tip", []byte("damaged"))
			if err := store.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		if err := tip.Clear(t.Context(), store, settled); err != nil {
			t.Fatal(err)
		}
		if after := sequence(); !damaged && after <= before {
			t.Errorf("the empty tree has number %d, the one before had %d", after, before)
		}
		for row, err := range store.Walk(t.Context(), tip.Tables()[0], 0) {
			t.Errorf("a row is left: %x, %v", row.Partition, err)
		}
		if of = openTip(t, store, settled); of.Len() != 0 || of.Forkchoice().Head.Ref() != settled {
			t.Errorf("%d blocks and the head %s after Clear", of.Len(), of.Forkchoice().Head.Ref())
		}
	}
}
