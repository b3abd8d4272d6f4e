package pebble_test

import (
	"math/rand/v2"
	"testing"
)

// Bytes that are written again, by a compaction, count again.
func TestStatsCountWrittenBytes(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			o.Path = t.TempDir()
			s := open(t, o)
			defer closeStore(t, s)
			value := make([]byte, 1<<20)
			random := rand.NewChaCha8([32]byte{1}) // so that they cannot be compressed
			before := s.Stats().WrittenBytes
			for i := range uint64(2) {
				random.Read(value)
				batch := s.NewBatch()
				batch.Put(slots, []byte("partition"), i, value)
				batch.Put(slots, []byte("partition"), 10-i, nil) // so that no table can stay as it is
				if err := s.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			synced := s.Stats().WrittenBytes - before
			if synced < 2<<20 {
				t.Errorf("%d bytes were written, expected at least the 2 MiB that are durable", synced)
			}
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if all := s.Stats().WrittenBytes - before; all < synced+2<<20 {
				t.Errorf("%d bytes were written after a compaction and %d before, expected 2 MiB more", all, synced)
			}
		})
	}
}
