package tip_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ashlar/history/tip"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// If settled rows can no longer be read, a scan ends: otherwise rows would seem to be missing
// before those of the branch.
func TestScanFails(t *testing.T) {
	ctx, cause := context.Background(), errors.New("unreadable")
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	batch := store.NewBatch()
	for number := uint64(7); number <= 9; number++ {
		batch.Put(perBlock, []byte("p"), number, []byte("settled"))
	}
	if err := store.Write(ctx, batch); err != nil {
		t.Fatal(err)
	}
	of := openTip(t, store, ref(9, 's'))
	last := ref(9, 's')
	for number := uint64(10); number <= 11; number++ {
		rows, parent := new(tip.Rows), last
		rows.Put(perBlock, []byte("p"), number, []byte("of the branch"))
		last = ref(number, 'a')
		if err := of.Add(ctx, last, parent.Hash, rows); err != nil {
			t.Fatal(err)
		}
	}
	branch, err := of.Branch(last.Hash)
	if err != nil {
		t.Fatal(err)
	}
	const next = 0
	for _, c := range []struct {
		after int // moves in the settled rows
		moves []uint64
		want  []uint64
		err   error
	}{
		{0, []uint64{next, next}, nil, cause},
		{0, []uint64{10, 11}, nil, cause},
		{1, []uint64{next, next, next}, []uint64{7}, cause},
		{1, []uint64{8, 10, 11}, []uint64{8}, cause},
		{3, []uint64{next, next, next, next, 11}, []uint64{7, 8, 9}, cause},
		{4, []uint64{next, next, next, next, next, next}, []uint64{7, 8, 9, 10, 11}, nil},
		{1, []uint64{10, next, 11, next}, []uint64{10, 11, 11}, nil},
	} {
		what := fmt.Sprintf("moves %d, of which %d do not fail below", c.moves, c.after)
		cursor := branch.Over(kvtest.FailAfter(store, c.after, cause)).Scan(ctx, perBlock, []byte("p"), 0, 99)
		var got []uint64
		for _, move := range c.moves {
			if move == next && cursor.Next() || move != next && cursor.Seek(move) {
				got = append(got, cursor.Sort())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: rows %d, expected %d", what, got, c.want)
		}
		for range 2 {
			if err := cursor.Close(); err != c.err {
				t.Errorf("%s: Close: %v, expected %v", what, err, c.err)
			}
		}
	}
}
