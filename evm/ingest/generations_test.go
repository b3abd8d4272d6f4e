package ingest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// TestGenerations: whatever is settled and evicted, an unsettled value is there, a value that is there is the
// newest one, and what was read late does not replace what a block wrote.
func TestGenerations(t *testing.T) {
	for _, limit := range []int64{0, 200, 4 << 10, 64 << 10} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			g := newGenerations(limit)
			type written struct {
				value string
				block uint64
			}
			model := make(map[string]written)
			settled, evicted := uint64(0), 0
			for block := uint64(1); block <= 3000; block++ {
				for range 3 {
					key := fmt.Append(nil, r.IntN(1000))
					value := fmt.Append(nil, block, "value"[:r.IntN(5)])
					g.set(key, value, block)
					model[string(key)] = written{string(value), block}
				}
				if block%20 == 0 || block > 1500 && block < 2000 {
					settled = block - min(block, r.Uint64N(100))
					g.settle(settled)
				}
				for range 3 {
					key := fmt.Append(nil, r.IntN(1000))
					w := model[string(key)]
					if r.IntN(3) == 0 && w.block <= settled {
						g.remember(key, []byte(w.value), g.aged) // as the archive has it
					}
					if w.block > settled {
						g.remember(key, []byte("older"), g.aged) // read before the block wrote it
					}
					value, ok := g.get(key)
					switch {
					case ok && string(value) != w.value:
						t.Fatalf("block %d, settled %d: %s is %q, want %q of block %d", block, settled, key, value, w.value, w.block)
					case !ok && w.block > settled:
						t.Fatalf("block %d, settled %d: %s of block %d is gone", block, settled, key, w.block)
					case !ok:
						evicted++
					}
				}
			}
			if evicted == 0 {
				t.Error("nothing was evicted")
			}
		})
	}
}

// TestUnsettledOutlastGenerations: as long as nothing settles, the last value of each key is there, however often
// it is written, read, and passed on from one generation to the next.
func TestUnsettledOutlastGenerations(t *testing.T) {
	for _, keys := range []int{5, 2000} { // each is written often, or once at most
		for _, limit := range []int64{0, 1 << 10} {
			t.Run(fmt.Sprintf("%d keys, %d bytes", keys, limit), func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				g := newGenerations(limit)
				last, written := make(map[string]string), make([]string, 0, keys)
				for block := uint64(1); block <= 2000; block++ {
					key := fmt.Sprint(r.IntN(keys))
					if last[key] == "" {
						written = append(written, key)
					}
					last[key] = fmt.Sprint(block, strings.Repeat(".", r.IntN(100))) // a longer one may not fit in place
					g.set([]byte(key), []byte(last[key]), block)
					if r.IntN(8) == 0 {
						g.remember(fmt.Append(nil, "settled ", r.IntN(1000)), []byte("value"), g.aged)
					}
					for _, key := range []string{key, written[r.IntN(len(written))], written[r.IntN(len(written))]} {
						if value, ok := g.get([]byte(key)); !ok || string(value) != last[key] {
							t.Fatalf("block %d: %s is %q, %t, want %q", block, key, value, ok, last[key])
						}
					}
				}
				if g.aged < 3 {
					t.Errorf("the generations aged %d times, want 3 or more", g.aged)
				}
			})
		}
	}
}

// TestRememberedLate: a value that was read before a block wrote another is not kept, also if the other one was
// evicted meanwhile.
func TestRememberedLate(t *testing.T) {
	key := []byte("key")
	// late returns what is known of the key after others were written before and after it.
	late := func(before, after int) (value []byte, known bool) {
		g := newGenerations(1 << 10)
		g.settle(1)
		missed := g.aged
		for i := range before + after {
			if i == before {
				g.set(key, []byte("newer"), 1)
			}
			g.set(fmt.Append(nil, "other ", i), nil, 1)
		}
		g.remember(key, []byte("older"), missed)
		return g.get(key)
	}
	for before := range 20 {
		for after := 1; ; after++ {
			value, known := late(before, after)
			if !known {
				break
			}
			if string(value) != "newer" {
				t.Fatalf("%d other values before and %d after the block's: %q is kept", before, after, value)
			}
		}
	}
}

// TestGenerationsFitTheirMemory: an import's accounts and slots take no more than it counts with, and as many
// have room.
func TestGenerationsFitTheirMemory(t *testing.T) {
	raced.Skip(t)
	s := sharesOf(DefaultMemory)
	t.Run("accounts", func(t *testing.T) {
		row := archive.AppendAccount(nil, &types.StateAccount{Nonce: 300, Balance: uint256.NewInt(1e18), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]})
		fill(t, s.accounts, row, 350_000, func(i uint64) []byte {
			return binary.BigEndian.AppendUint64(make([]byte, common.HashLength-8), i)
		})
	})
	t.Run("slots", func(t *testing.T) {
		fill(t, s.slots, []byte("8 bytes."), 750_000, func(i uint64) []byte {
			key := slotKey(common.Hash{1}, common.BigToHash(uint256.NewInt(i).ToBig()))
			return key[:]
		})
	})
}

// fill fills both generations, and fails if they take more than their limit, or hold fewer values
// than wanted.
func fill(t *testing.T, limit int64, value []byte, want uint64, key func(uint64) []byte) {
	before := heap()
	g := newGenerations(limit)
	for i := range 2 * want {
		g.set(key(i), value, 0)
	}
	if got := heap() - before; got > uint64(limit+limit/32) { // goroutines of earlier tests may still end
		t.Errorf("%d bytes are in use, want at most %d", got, limit)
	}
	if got := uint64(2 * g.old.Len()); got < want {
		t.Errorf("two full generations hold %d values, want at least %d", got, want)
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
