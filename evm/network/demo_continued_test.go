package network

import (
	"errors"
	"testing"

	"ashlar/family"
)

// A past that was interrupted before the first block of Amsterdam goes on up to it, even if fewer blocks are wanted: a block
// that is made now is after the fork's time.
func TestInterruptedDemoReachesAmsterdam(t *testing.T) {
	shown, store, place := fullDemo(t, 20)
	before, _, _ := fullDemo(t, 0)
	d := demoNetwork{shown: shown, before: before}
	i, err := createDemo(t.Context(), place, shown)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.makePast(t.Context(), i, 12), i.Close()); err != nil {
		t.Fatal(err)
	}
	if err := d.Create(t.Context(), place, 10); err != nil {
		t.Fatal(err)
	}
	n, err := Family{}.Open(t.Context(), store, new(Entries), false)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if status, err := n.Status(t.Context()); err != nil || status.Head != 20 {
		t.Errorf("the head is block %d, %v; expected 20", status.Head, err)
	}
}

// A demo that was served keeps the blocks that it showed when it is started again with a longer past.
func TestDemoKeepsItsBlocks(t *testing.T) {
	shown, store, place := fullDemo(t, 0)
	n, m := startMiner(t, shown, store, place)
	for range 2 {
		if err := m.mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (demoNetwork{shown: shown, before: shown}).Create(t.Context(), place, 60); err != nil {
		t.Fatal(err)
	}
	again, err := Family{}.Open(t.Context(), store, new(Entries), false)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Serve(t.Context(), family.Service{Name: "demo", Data: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	after, err := again.Status(t.Context())
	if err != nil || before.Head != 42 || after.Head != before.Head || after.HeadTime != before.HeadTime {
		t.Errorf("the head was block %d of %d, and is block %d of %d, %v; expected the same", before.Head, before.HeadTime, after.Head, after.HeadTime, err)
	}
}
