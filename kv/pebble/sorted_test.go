package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// setOperation is what a batch does to one key.
type setOperation struct {
	kind       lsm.InternalKeyKind
	key, value []byte
}

func setOperations(t *testing.T, encoded []byte) (operations []setOperation) {
	t.Helper()
	for rest := batchrepr.Read(encoded); len(rest) > 0; {
		kind, key, value, ok, err := rest.Next()
		if !ok || err != nil {
			t.Fatal("the batch does not decode", err)
		}
		operations = append(operations, setOperation{kind, key, value})
	}
	return operations
}

// TestSorted: whatever the rows of a batch are, sorting puts the same rows in the order
// of the store's comparer, and leaves those of one key in the order that they had.
func TestSorted(t *testing.T) {
	store := openBulk(t)
	random := rand.New(rand.NewPCG(1, 2))
	versions := &kv.Table{ID: 1, Name: "versions", Kind: kv.Versions}
	list := &kv.Table{ID: 2, Name: "list", Kind: kv.List}
	for _, c := range []struct {
		name      string
		rows      int
		partition func() []byte
	}{
		{"none", 0, nil},
		{"one", 1, func() []byte { return []byte("p") }},
		{"of one partition", 100, func() []byte { return []byte("a partition of some length") }},
		{"hashes", 500, func() []byte { return binary.BigEndian.AppendUint64(nil, random.Uint64()) }},
		{"of a few owners", 500, func() []byte {
			owner := bytes.Repeat([]byte{byte(random.IntN(3))}, 32)
			return binary.BigEndian.AppendUint64(owner, random.Uint64())
		}},
		// Zeros are also what ends a prefix, and what fills one up that is compared as a number.
		{"paths of zeros and ones", 500, func() []byte {
			path := make([]byte, random.IntN(20))
			for i := range path {
				path[i] = byte(random.IntN(12) / 11)
			}
			return path
		}},
		{"long partitions", 200, func() []byte {
			return bytes.Repeat([]byte{byte(random.IntN(2))}, kv.MaxPartition-random.IntN(9))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := store.newBatch()
			for i := range c.rows {
				table := []*kv.Table{versions, list}[random.IntN(2)]
				value := bytes.Repeat([]byte{byte(i)}, random.IntN(300))
				b.Put(table, c.partition(), uint64(random.IntN(50)), value)
				switch i % 50 {
				case 1:
					b.Delete(table, c.partition(), uint64(random.IntN(50)))
				case 2:
					b.DeleteRange(table, c.partition(), uint64(random.IntN(50)), 50)
				}
				if i%100 == 0 {
					b.SetPointer("settled", binary.BigEndian.AppendUint64(nil, uint64(i)))
				}
			}
			encoded := b.b.Repr()
			want := setOperations(t, encoded)
			slices.SortStableFunc(want, func(a, b setOperation) int { return compare(a.key, b.key) })
			result, ok := newSorter().sorted(encoded)
			if !ok || !bytes.Equal(result[:batchrepr.HeaderLen], encoded[:batchrepr.HeaderLen]) {
				t.Fatalf("sorting says %t, the header became %x", ok, result[:batchrepr.HeaderLen])
			}
			got := setOperations(t, result)
			if !slices.EqualFunc(got, want, func(a, b setOperation) bool {
				return a.kind == b.kind && bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value)
			}) {
				t.Error("the rows are not in order")
			}
		})
	}
}

func openBulk(tb testing.TB) *Store {
	tb.Helper()
	store, err := Open(Options{Path: "store", FS: vfs.NewMem(), Options: kv.Options{BulkLoad: true}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// BenchmarkBulkWrite writes rows in the way of an import: slots of a few owners and
// of many, in no order, so many a batch.
func BenchmarkBulkWrite(b *testing.B) {
	table := &kv.Table{ID: 1, Name: "slots", Kind: kv.Versions}
	for _, rows := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			store, random := openBulk(b), rand.New(rand.NewPCG(1, 2))
			partition, value := make([]byte, 64), make([]byte, 40)
			batch := store.NewBatch()
			block := uint64(0)
			b.ResetTimer()
			for n := 0; n < b.N; n += rows {
				batch.Reset()
				block++
				for range min(rows, b.N-n) {
					partition[0] = byte(cmp.Or(random.IntN(2), random.IntN(256)))
					binary.BigEndian.PutUint64(partition[32:], random.Uint64())
					batch.Put(table, partition, block, value)
				}
				if err := store.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
