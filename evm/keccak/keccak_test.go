package keccak

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// sums calls f with each way to hash several inputs that the processor has.
func sums(t *testing.T, f func(t *testing.T, sum func([][]byte, []common.Hash))) {
	t.Run("Sum", func(t *testing.T) { f(t, Sum) })
	t.Run("one at a time", func(t *testing.T) {
		defer func(before bool) { four = before }(four)
		four = false
		f(t, Sum)
	})
	t.Run("four at a time", func(t *testing.T) {
		defer func(before bool) { four = before }(four)
		four = true // in Go, where the processor has no AVX2
		f(t, Sum)
	})
}

// TestKnownHashes has hashes of the Ethereum yellow paper: of nothing, and of an empty trie.
func TestKnownHashes(t *testing.T) {
	sums(t, func(t *testing.T, sum func([][]byte, []common.Hash)) {
		hashes := make([]common.Hash, 3)
		sum([][]byte{nil, {0x80}, {0xc0}}, hashes)
		for i, want := range []string{
			"c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
			"56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
			"1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
		} {
			if got := hex.EncodeToString(hashes[i][:]); got != want {
				t.Errorf("hash %d: got %s, want %s", i, got, want)
			}
		}
	})
}

// TestLengths compares hashes of inputs around the length of a block, in every position.
func TestLengths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lengths := []int{0, 1, 31, 32, 55, 134, 135, 136, 137, 271, 272, 273, 532, 1000, 5000}
	sums(t, func(t *testing.T, sum func([][]byte, []common.Hash)) {
		for n := range 40 {
			inputs := make([][]byte, n)
			for i := range inputs {
				inputs[i] = make([]byte, lengths[random.IntN(len(lengths))])
				for j := range inputs[i] {
					inputs[i][j] = byte(random.Uint32())
				}
			}
			hashes := make([]common.Hash, n)
			sum(inputs, hashes)
			want := make([]common.Hash, n)
			for i, input := range inputs {
				want[i] = crypto.Keccak256Hash(input)
			}
			if !slices.Equal(hashes, want) {
				t.Fatalf("%d inputs: got %x, want %x", n, hashes, want)
			}
		}
	})
}

func TestSumDoesNotAllocate(t *testing.T) {
	inputs, hashes := make([][]byte, 20), make([]common.Hash, 20)
	if allocated := testing.AllocsPerRun(100, func() { Sum(inputs, hashes) }); allocated >= 1 {
		t.Errorf("got %v allocations, want none", allocated)
	}
}

// BenchmarkSum hashes the trie nodes of a proof, and transactions of a block.
func BenchmarkSum(b *testing.B) {
	proof := make([][]byte, 12)
	for i := range proof {
		proof[i] = make([]byte, 532)
	}
	proof[6], proof[11] = proof[6][:104], proof[11][:60]
	transactions := make([][]byte, 60)
	for i := range transactions {
		transactions[i] = make([]byte, 110+i)
	}
	for name, inputs := range map[string][][]byte{"proof": proof, "transactions": transactions} {
		hashes := make([]common.Hash, len(inputs))
		b.Run(name+" together", func(b *testing.B) {
			for b.Loop() {
				Sum(inputs, hashes)
			}
		})
		b.Run(name+" alone", func(b *testing.B) {
			h := hashers.Get().(*hasher)
			for b.Loop() {
				for i, input := range inputs {
					h.sumAlone(input, &hashes[i])
				}
			}
		})
	}
}
