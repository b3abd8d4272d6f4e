package packed

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"testing"
)

type version struct {
	since uint64
	value string
}

// Random rows are put, replaced and cleared. Find and All return the same as a map would, with good
// hashes and with ones that collide.
func TestAsAMap(t *testing.T) {
	seed := maphash.MakeSeed()
	hashes := map[string]func([]byte) uint64{
		"maphash": func(key []byte) uint64 { return maphash.Bytes(seed, key) },
		"same":    func([]byte) uint64 { return 5 },
		"last":    func(key []byte) uint64 { return math.MaxUint64 - uint64(key[0])%3 }, // the index is walked past its end
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			rows, model := Within(8<<10), make(map[string]version)
			full := 0
			for step := range uint64(5_000) {
				key := fmt.Append(nil, r.IntN(300), "key"[:r.IntN(2)])
				value := make([]byte, r.IntN(20))
				for i := range value {
					value[i] = byte(step)
				}
				if !rows.Fits(key, value) {
					t.Fatal("a short row does not fit")
				}
				if rows.Put(hash(key), key, step, value) {
					model[string(key)] = version{step, string(value)}
				} else {
					full++
					rows.Clear()
					clear(model)
				}
				probe := fmt.Append(nil, r.IntN(300))
				found := rows.Find(hash(probe), probe)
				want, exists := model[string(probe)]
				if found.Exists() != exists || exists && (found.Since() != want.since || string(found.Value()) != want.value || string(found.Key()) != string(probe)) {
					t.Fatalf("step %d: %s exists: %t, want %t, %v", step, probe, found.Exists(), exists, want)
				}
			}
			if full < 3 {
				t.Errorf("the rows were full %d times, so few tests of that", full)
			}
			all := make(map[string]version)
			for row := range rows.All() {
				all[string(row.Key())] = version{row.Since(), string(row.Value())}
			}
			if len(all) != len(model) || rows.Len() != len(model) {
				t.Errorf("%d rows, All has %d, want %d", rows.Len(), len(all), len(model))
			}
			for key, want := range model {
				if all[key] != want {
					t.Errorf("All has %v for %q, want %v", all[key], key, want)
				}
			}
		})
	}
}

// The memory stays within the limit, whatever its size, and is used: by rows of slots, and by
// shorter ones, of which the index holds fewer.
func TestWithin(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, limit := range []int64{0, 100, 1000, 1 << 20, 1<<20 + 1<<19} {
		for _, keyBytes := range []int{8, 65} {
			rows := Within(limit)
			key := make([]byte, keyBytes)
			for n := uint64(0); ; n++ {
				binary.BigEndian.PutUint64(key, n)
				if !rows.Fits(key, nil) || !rows.Put(maphash.Bytes(seed, key), key, 0, nil) {
					break
				}
			}
			if got := int64(rows.Bytes()); got > limit {
				t.Errorf("%d bytes are allocated, want at most %d", got, limit)
			}
			used := rows.Len() * (HeaderBytes + keyBytes + placeBytes)
			if limit >= 1<<20 && int64(used) < limit/4 {
				t.Errorf("%d rows in %d bytes", rows.Len(), limit)
			}
		}
	}
}

// The index grows with the rows that it is for, of which positions of 32 bits bound the bytes.
func TestHugeLimit(t *testing.T) {
	rows := Within(1 << 60)
	if index := rows.places * placeBytes; index > rows.limit/(indexShare-1)+placeBytes {
		t.Errorf("an index of %d bytes for %d bytes of rows", index, rows.limit)
	}
	if rows.limit < math.MaxUint32/2 {
		t.Errorf("rows within 1 EiB take at most %d bytes", rows.limit)
	}
}

// Rows that do not fit are refused.
func TestFits(t *testing.T) {
	rows := Within(1 << 20)
	for _, fits := range []struct {
		key, value int
		want       bool
	}{{1, 1, true}, {1<<16 - 1, 1<<16 - 1, true}, {1 << 16, 1, false}, {1, 1 << 16, false}} {
		if got := rows.Fits(make([]byte, fits.key), make([]byte, fits.value)); got != fits.want {
			t.Errorf("a key of %d bytes with a value of %d bytes fits: %t, want %t", fits.key, fits.value, got, fits.want)
		}
	}
	tiny := Within(placeBytes * indexShare) // its index has one place, which would never be free again
	if tiny.Fits(nil, nil) || tiny.Put(1, nil, 0, nil) || tiny.Find(2, nil).Exists() {
		t.Error("rows with one place in the index have room for one")
	}
	none := Rows{}
	if none.Fits(nil, nil) || none.Find(1, nil).Exists() || none.Bytes() != 0 {
		t.Error("the zero value has room for a row")
	}
}
