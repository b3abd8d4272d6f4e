package tries_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ashlar/evm/execute/tries"
	"ashlar/internal/usage"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// BenchmarkBlock changes 100 of 5,000 accounts and 200 of 50,000 slots of another one, as one
// of many blocks does: with go-ethereum's tries, with ours anew for each block, and with ours
// kept. Nodes are read from a map.
//
//	go test ./evm/execute/tries -run '^$' -bench Block -benchtime 1000x
func BenchmarkBlock(b *testing.B) {
	const accounts, slots = 5_000, 50_000
	hash := func(i uint64) common.Hash { return crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, i)) }
	token := hash(accounts)
	block := func(r *rand.Rand, accountCount, slotCount int) changes {
		c := changes{make(map[common.Hash]*types.StateAccount), map[common.Hash]map[common.Hash]common.Hash{token: {}}}
		for range accountCount {
			account := types.NewEmptyStateAccount()
			account.Balance = uint256.NewInt(r.Uint64())
			c.accounts[hash(r.Uint64N(accounts))] = account
		}
		c.accounts[token] = types.NewEmptyStateAccount()
		for range slotCount {
			c.slots[token][hash(r.Uint64N(slots))] = common.BigToHash(uint256.NewInt(1 + r.Uint64()).ToBig())
		}
		return c
	}
	for _, kind := range []string{"library", "anew", "kept"} {
		b.Run(kind, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			w, kept := newWorld(b), tries.New(1<<30)
			w.apply(kept, block(r, 2*accounts, 2*slots))
			b.ReportAllocs()
			began := usage.Read().Processor
			for b.Loop() {
				c := block(r, 100, 200)
				switch kind {
				case "library":
					root, roots, changed := w.reference(c)
					for at, n := range changed {
						w.nodes.stored[at] = n.Blob
					}
					w.root, w.accounts = root, roots
					continue
				case "anew":
					kept = tries.New(0)
				}
				root, roots, changed := w.change(kept, c)
				for _, n := range changed {
					w.nodes.stored[place{n.Owner, n.Path}] = n.Blob
				}
				w.root, w.accounts = root, roots
			}
			b.ReportMetric(float64((usage.Read().Processor-began).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
