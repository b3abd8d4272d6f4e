package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

func openStore(t *testing.T) kv.Store {
	store, err := pebble.Open(pebble.Options{Path: "rows", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func write(t *testing.T, store kv.Store, fill func(kv.Batch)) {
	t.Helper()
	batch := store.NewBatch()
	fill(batch)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

func TestDecoder(t *testing.T) {
	row := []byte{7, 0x80, 0x01, 2, 'a', 'b', 1, 3, 0, 0, 0, 'x', 'y', 'z'}
	d := Decode(row)
	if d.Byte() != 7 || d.Uvarint() != 128 || string(d.UvarintBytes()) != "ab" {
		t.Fatal("values differ from those written")
	}
	offsets := d.Offsets()
	if item, ok := offsets.Item(d.Rest(), 0); offsets.Len() != 1 || !ok || string(item) != "xyz" {
		t.Errorf("item %q, %v", item, ok)
	}
	if err := d.End("test"); err != nil {
		t.Error(err)
	}
	for n := range len(row) - 3 {
		cut := Decode(row[:n])
		cut.Byte()
		cut.Uvarint()
		cut.UvarintBytes()
		cut.Offsets()
		if err := cut.End("test"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of the row: %v, want ErrCorrupt", n, err)
		}
	}
	left := Decode(row)
	if err := left.End("test"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a row that is not read to its end: %v, want ErrCorrupt", err)
	}
}

// A count is refused if so many items do not fit, before memory is made for them.
func TestCountsThatDoNotFit(t *testing.T) {
	for items := range uint64(8) {
		row := append(binary.AppendUvarint(nil, items), make([]byte, 15)...)
		d := Decode(row)
		want := int(items)
		if items > 3 { // 4 items of 4 bytes take 16
			want = 0
		}
		if got := d.Count(4); got != want || d.Failed() != (items > 3) {
			t.Errorf("%d items of 4 bytes in 15 bytes: count %d, failed %t", items, got, d.Failed())
		}
	}
}

func TestOffsetsThatDoNotFit(t *testing.T) {
	items := []byte("xyz")
	for _, offsets := range []Offsets{{4, 0, 0, 0}, {2, 0, 0, 0, 1, 0, 0, 0}} {
		if item, ok := offsets.Item(items, offsets.Len()-1); ok {
			t.Errorf("%v: item %q", offsets, item)
		}
	}
}

func TestAscendingReadsEveryPartition(t *testing.T) {
	store, table := openStore(t), &kv.Table{ID: 1, Name: "blocks", Kind: kv.List}
	const last = 3<<ChunkBits + 5
	write(t, store, func(batch kv.Batch) {
		for number := range uint64(last + 1) {
			if partition := Chunk(number); number%7 != 3 {
				batch.Put(table, partition[:], number, []byte{byte(number)})
			}
		}
	})
	for _, step := range []uint64{1, 2, 5, 1000, 1 << ChunkBits} {
		reader := ReadAscending(t.Context(), store, table, last)
		for number := uint64(0); number <= last+1; number += step {
			row, err := reader.Row(number)
			if number > last || number%7 == 3 {
				if !errors.Is(err, ErrNotFound) {
					t.Fatalf("block %d: %v, want ErrNotFound", number, err)
				}
			} else if err != nil || row[0] != byte(number) {
				t.Fatalf("block %d: %v, %v", number, row, err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHold(t *testing.T) {
	store, table := openStore(t), &kv.Table{ID: 1, Name: "blocks", Kind: kv.List}
	const first, last = 1<<ChunkBits - 1, 1 << ChunkBits // in two partitions
	write(t, store, func(batch kv.Batch) {
		for _, number := range []uint64{first, last} {
			partition := Chunk(number)
			batch.Put(table, partition[:], number, []byte{byte(number >> 8)})
		}
	})
	one, err := Hold(t.Context(), store, table, first)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Hold(t.Context(), store, table, last)
	if err != nil {
		t.Fatal(err)
	}
	if one.Value()[0] != first>>8 || other.Value()[0] != last>>8 {
		t.Errorf("rows %x and %x, held at the same time", one.Value(), other.Value())
	}
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	for _, number := range []uint64{0, first - 1, last + 1, 5 * last} {
		if _, err := Hold(t.Context(), store, table, number); !errors.Is(err, ErrNotFound) {
			t.Errorf("block %d: %v, want ErrNotFound", number, err)
		}
	}
}

// An error of reading a row is not ErrNotFound.
func TestFailedReadsAreReported(t *testing.T) {
	store, table := openStore(t), &kv.Table{ID: 1, Name: "blocks", Kind: kv.List}
	cause := errors.New("unreadable")
	for what, read := range map[string]func(kv.Reader) error{
		"Hold": func(r kv.Reader) error {
			_, err := Hold(t.Context(), r, table, 1)
			return err
		},
		"Ascending": func(r kv.Reader) error {
			reader := ReadAscending(t.Context(), r, table, 9)
			_, err := reader.Row(1)
			return errors.Join(err, reader.Close())
		},
		"FindBlock": func(r kv.Reader) error {
			return FindBlock(t.Context(), r, table, make([]byte, 32), 0, func(uint64) (bool, error) { return true, nil })
		},
	} {
		if err := read(kvtest.FailAfter(store, 0, cause)); !errors.Is(err, cause) || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want an error that the store is unreadable", what, err)
		}
	}
}

// Callers distinguish hashes with the same prefix.
func TestHashPrefixCollisions(t *testing.T) {
	store, table := openStore(t), &kv.Table{ID: 1, Name: "hashes", Kind: kv.List}
	hash := common.Hash{1, 2, 3, 4, 5, 6, 7}
	places := []Place{{Number: 5, Index: 0}, {Number: 5, Index: MaxTransactions}, {Number: 1 << 40, Index: 3}}
	write(t, store, func(batch kv.Batch) {
		for i, place := range places {
			alike := hash
			alike[31] = byte(i)
			PutTransactionHash(batch, table, alike[:], place)
		}
	})
	var seen []Place
	look := func(until Place) error {
		seen = nil
		return FindTransaction(t.Context(), store, table, hash[:], 0, func(place Place) (bool, error) {
			seen = append(seen, place)
			return place == until, nil
		})
	}
	if err := look(Place{}); err != nil || len(seen) != 3 || seen[2] != places[2] {
		t.Errorf("saw %v, %v, want %v", seen, err, places)
	}
	if err := look(places[1]); err != nil || len(seen) != 2 {
		t.Errorf("saw %v, %v, want the first two of %v", seen, err, places)
	}
}

func TestPointers(t *testing.T) {
	store, ctx := openStore(t), context.Background()
	if err := CheckFormat(ctx, store, "test-1"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("an empty store: %v, want kv.ErrNotFound", err)
	}
	if _, ok, err := Settled(ctx, store); ok || err != nil {
		t.Errorf("an empty store: settled %v, %v", ok, err)
	}
	want := chain.Ref{Number: 77, Hash: common.Hash{7}}
	write(t, store, func(batch kv.Batch) { SetFormat(batch, "test-1"); SetSettled(batch, want) })
	if err := CheckFormat(ctx, store, "test-1"); err != nil {
		t.Error(err)
	}
	if err := CheckFormat(ctx, store, "test-2"); !errors.Is(err, ErrFormat) {
		t.Errorf("another format: %v, want ErrFormat", err)
	}
	if got, ok, err := Settled(ctx, store); got != want || !ok || err != nil {
		t.Errorf("settled %v, %v, %v, want %v", got, ok, err, want)
	}
}

func FuzzSettledPointer(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, pointer []byte) {
		if _, err := decodeRef(pointerSettled, pointer); (err == nil) != (len(pointer) == 40) || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes: %v", len(pointer), err)
		}
	})
}
