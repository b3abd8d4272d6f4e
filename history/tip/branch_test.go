package tip_test

import (
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLayersAreMerged: a long branch has a layer for each 16 blocks, besides those of its last blocks, and none has a row that
// another one has. A branch that was loaded has the same layers.
func TestLayersAreMerged(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	of := openTip(t, store, ref(4, 'a'))
	for number := uint64(5); number <= 5+100; number++ {
		grow(t, of, ref(number, 'a'), ref(number-1, 'a'))
	}
	for what, of := range map[string]*tip.Tip{"made": of, "loaded": openTip(t, store, ref(4, 'a'))} {
		branch, err := of.Branch(ref(105, 'a').Hash)
		if err != nil {
			t.Fatal(err)
		}
		// 5 to 16, then five of 16 blocks up to 96, and 97 to 105 one by one.
		if layers, rows := branch.Layers(); layers != 1+5+9 || rows != 101 {
			t.Errorf("%s: %d layers with %d rows, expected 15 with 101", what, layers, rows)
		}
	}
}

// TestAtAndUnsettled: blocks of a branch by their numbers, and none above its end or below its beginning.
func TestAtAndUnsettled(t *testing.T) {
	_, of, settled := withHead(t)
	grow(t, of, ref(12, 'a'), ref(11, 'a'))
	setHead(t, of, ref(12, 'a'))
	for number, want := range map[uint64]chain.Ref{9: {}, 10: settled, 11: ref(11, 'a'), 12: ref(12, 'a'), 13: {}} {
		got, ok := of.Forkchoice().Head.At(number)
		if got != want || ok != (want != chain.Ref{}) {
			t.Errorf("At(%d): %s, %t, expected %s", number, got, ok, want)
		}
		var last chain.Ref
		unsettled := of.Unsettled(number)
		for i, block := range unsettled {
			if last = block.Ref(); last != ref(11+uint64(i), 'a') {
				t.Errorf("Unsettled(%d): block %d is %s", number, i, last)
			}
		}
		if want := max(min(number, 12), 10) - 10; uint64(len(unsettled)) != want {
			t.Errorf("Unsettled(%d): %d blocks, expected %d", number, len(unsettled), want)
		}
	}
}

// TestExtend: a pending block is on a branch of its own. The tip does not have it.
func TestExtend(t *testing.T) {
	store, of, _ := withHead(t)
	head := of.Forkchoice().Head
	rows := new(tip.Rows)
	rows.Put(versions, []byte("last"), 12, []byte("pending"))
	branch, err := of.Extend(head, ref(12, 'p'), rows)
	if err != nil {
		t.Fatal(err)
	}
	if got := last(t, branch, store, 12); got != "pending" || branch.Ref() != ref(12, 'p') || of.Has(ref(12, 'p').Hash) {
		t.Errorf("the branch ends with %s and reads %q; the tip has the block: %t", branch.Ref(), got, of.Has(ref(12, 'p').Hash))
	}
	if got := last(t, head, store, 12); got != ref(11, 'a').String() {
		t.Errorf("the branch that was extended reads %q", got)
	}
	for _, number := range []uint64{11, 13} {
		if _, err := of.Extend(head, ref(number, 'p'), new(tip.Rows)); err == nil {
			t.Errorf("block %d follows block 11", number)
		}
	}
	unknown := new(tip.Rows)
	unknown.Put(&kv.Table{ID: 99, Name: "unknown", Kind: kv.List}, nil, 1, nil)
	if _, err := of.Extend(head, ref(12, 'p'), unknown); !errors.Is(err, tip.ErrCorrupt) {
		t.Errorf("a row of a table unknown to the tip: %v", err)
	}
}
