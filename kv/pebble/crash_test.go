package pebble_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCrash takes the disk away at many moments of a store's life, with any part
// of what was not yet synced lost, and opens what is left: it is always the store
// as it was after some Write, at least the last one that was synced.
func TestCrash(t *testing.T) {
	raced.Skip(t)
	for name, o := range modes() {
		for _, kept := range []int{0, 30, 100} {
			t.Run(fmt.Sprintf("%s/%dPercentKept", name, kept), func(t *testing.T) {
				testCrash(t, o, kept)
			})
		}
	}
}

func testCrash(t *testing.T, o pebble.Options, kept int) {
	const writes = 60
	rng := rand.New(rand.NewPCG(1, uint64(kept)))
	fs := vfs.NewCrashableMem()
	o.Path, o.FS = "store", fs
	s := open(t, o)
	b := s.NewBatch()
	synced := uint64(0)
	for n := uint64(1); n <= writes; n++ {
		writeNumbered(t, s, b, n)
		if rng.IntN(8) == 0 {
			if err := s.Sync(context.Background()); err != nil {
				t.Fatal(err)
			}
			synced = n
		}
		if rng.IntN(4) > 0 {
			continue
		}
		after := o
		after.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rng})
		checkNumbered(t, after, synced, n)
	}
	closeStore(t, s)
	// Close makes everything durable.
	after := o
	after.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	checkNumbered(t, after, writes, writes)
}

const rowsPerWrite = 20

// writeNumbered writes batch number n: some rows and a pointer that says n.
func writeNumbered(t *testing.T, s *pebble.Store, b kv.Batch, n uint64) {
	t.Helper()
	b.Reset()
	b.SetPointer("head", binary.BigEndian.AppendUint64(nil, n))
	for i := range rowsPerWrite {
		b.Put(rows, fmt.Append(nil, "partition ", i), n, make([]byte, 1000))
	}
	if err := s.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// checkNumbered opens a store and expects in it exactly the writes up to some
// number between from and to.
func checkNumbered(t *testing.T, o pebble.Options, from, to uint64) {
	t.Helper()
	ctx := context.Background()
	s := open(t, o)
	defer closeStore(t, s)
	head := uint64(0)
	v, err := s.Pointer(ctx, "head")
	switch {
	case err == nil:
		head = binary.BigEndian.Uint64(v)
	case !errors.Is(err, kv.ErrNotFound):
		t.Fatal(err)
	}
	if head < from || head > to {
		t.Errorf("after a crash at write %d, synced up to %d: the pointer says %d", to, from, head)
	}
	found := uint64(0)
	for r, err := range s.Walk(ctx, rows, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Sort > head {
			t.Errorf("row %s of write %d is there, the pointer says %d", r.Partition, r.Sort, head)
		}
		found++
	}
	if found != head*rowsPerWrite {
		t.Errorf("%d rows, expected %d of %d writes", found, head*rowsPerWrite, head)
	}
}
