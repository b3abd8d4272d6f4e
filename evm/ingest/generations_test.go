package ingest

import (
	"encoding/binary"
	"runtime"
	"testing"

	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
)

// TestGenerationsFitTheirMemory: full generations take no more than an import counts with. A limit just above
// what a map holds without growing takes twice as much.
func TestGenerationsFitTheirMemory(t *testing.T) {
	raced.Skip(t)
	t.Run("accounts", func(t *testing.T) {
		g := newGenerations[common.Hash, account](latestAccounts, one)
		fill(t, &g, 250, func(i uint64) (key common.Hash) {
			binary.BigEndian.PutUint64(key[:], i)
			return key
		})
	})
	t.Run("slots", func(t *testing.T) {
		g := newGenerations[slotKey, common.Hash](latestSlots, one)
		fill(t, &g, 160, func(i uint64) (key slotKey) {
			binary.BigEndian.PutUint64(key.slot[:], i)
			return key
		})
	})
}

// fill fills both generations, and fails if an entry takes more than a number of bytes.
func fill[K comparable, V any](t *testing.T, g *generations[K, V], most uint64, key func(uint64) K) {
	before := heap()
	var value V
	for i := range uint64(g.limit) * 3 {
		g.set(key(i), value, 0)
	}
	entries := uint64(2 * g.limit)
	if got := (heap() - before) / entries; got > most {
		t.Errorf("an entry takes %d bytes, want %d at most", got, most)
	}
	runtime.KeepAlive(g)
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
