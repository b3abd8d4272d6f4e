package pebble_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"
)

var slots = &kv.Table{ID: 2, Name: "slots", Kind: kv.Versions}

const (
	benchPartitions = 1_000_000
	benchBlocks     = 10_000
)

// benchPartition is partition number i, which looks like a hash.
func benchPartition(buf []byte, i uint64) []byte {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, i))
	return append(buf[:0], h[:]...)
}

// filled is a compacted store of a million partitions, nine in ten with one
// version and the rest with ten, and one posting list of 100,000 rows.
func filled(b *testing.B) *pebble.Store {
	b.Helper()
	ctx := context.Background()
	s := open(b, pebble.Options{Path: b.TempDir(), Options: kv.Options{BulkLoad: true, CacheBytes: 512 << 20}})
	b.Cleanup(func() { closeStore(b, s) })
	batch := s.NewBatch()
	var partition []byte
	value := make([]byte, 32)
	for i := range uint64(benchPartitions) {
		partition = benchPartition(partition, i)
		n := 1
		if i%10 == 0 {
			n = 10
		}
		for v := range n {
			batch.Put(slots, partition, uint64(v)*benchBlocks/10+i%100, value)
		}
		if i%10 == 0 {
			batch.Put(rows, []byte("posting"), i, value[:3])
		}
		if batch.Rows() > 10_000 {
			if err := s.Write(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	if err := s.Write(ctx, batch); err != nil {
		b.Fatal(err)
	}
	if err := s.Compact(ctx); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkRead measures reads that the cache holds. Run it with -cpu 1,2.
func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	s := filled(b)
	names := make([][]byte, benchPartitions)
	for i := range names {
		names[i] = benchPartition(nil, uint64(i))
	}
	absent := make([][]byte, benchPartitions)
	for i := range absent {
		absent[i] = benchPartition(nil, uint64(i)+1<<40)
	}
	for _, name := range names {
		if _, _, err := s.Newest(ctx, slots, name, benchBlocks*2, nil); err != nil {
			b.Fatal(err)
		}
	}
	parallel := func(name string, read func(rng *rand.Rand, dst []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
				dst := make([]byte, 0, 64)
				for pb.Next() {
					if err := read(rng, dst); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	parallel("Newest", func(rng *rand.Rand, dst []byte) error {
		_, _, err := s.Newest(ctx, slots, names[rng.IntN(len(names))], benchBlocks*2, dst)
		return err
	})
	parallel("NewestOfOld", func(rng *rand.Rand, dst []byte) error {
		_, _, err := s.Newest(ctx, slots, names[rng.IntN(len(names)/10)*10], uint64(100+rng.IntN(benchBlocks)), dst)
		return err
	})
	parallel("NewestAbsent", func(rng *rand.Rand, dst []byte) error {
		if _, _, err := s.Newest(ctx, slots, absent[rng.IntN(len(names))], benchBlocks*2, dst); err != kv.ErrNotFound {
			return err
		}
		return nil
	})
	parallel("Get", func(rng *rand.Rand, dst []byte) error {
		i := rng.IntN(len(names))
		_, err := s.Get(ctx, slots, names[i], uint64(i%100), dst)
		return err
	})
	parallel("TablesByTurns", func(rng *rand.Rand, dst []byte) error {
		if _, _, err := s.Newest(ctx, slots, names[rng.IntN(len(names))], benchBlocks*2, dst); err != nil {
			return err
		}
		_, err := s.Get(ctx, rows, []byte("posting"), uint64(rng.IntN(benchPartitions/10)*10), dst)
		return err
	})
	parallel("ScanLeap", func(rng *rand.Rand, dst []byte) error {
		// 100 leaps over about 100 rows each
		c := s.Scan(ctx, rows, []byte("posting"), 0, benchPartitions)
		for at := uint64(rng.IntN(1000)); c.Seek(at) && at < 100_000; at = c.Sort() + 1000 {
		}
		return c.Close()
	})
	parallel("ScanThousand", func(rng *rand.Rand, dst []byte) error {
		from := uint64(rng.IntN(benchPartitions - 10_000))
		c := s.Scan(ctx, rows, []byte("posting"), from, from+10_000)
		for c.Next() {
		}
		return c.Close()
	})
}

// BenchmarkNewestAfterWrite measures a read that has to make its iterator anew.
func BenchmarkNewestAfterWrite(b *testing.B) {
	ctx := context.Background()
	s := open(b, pebble.Options{Path: b.TempDir()})
	defer closeStore(b, s)
	put(b, s, "partition", 1, []byte("value"))
	batch := s.NewBatch()
	batch.Put(slots, []byte("slot"), 1, []byte("value"))
	for _, reads := range []int{0, 1, 10} {
		b.Run(map[int]string{0: "WriteOnly", 1: "OneRead", 10: "TenReads"}[reads], func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 64)
			for b.Loop() {
				if err := s.Write(ctx, batch); err != nil {
					b.Fatal(err)
				}
				for range reads {
					if _, _, err := s.Newest(ctx, rows, []byte("partition"), 9, dst); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
