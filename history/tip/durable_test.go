package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/kv"

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
}
