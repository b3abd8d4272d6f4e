package tries

import (
	"math"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// The estimate counts what nodes that are new at their path are encoded as, and the tries: it is
// not below what an eviction counts.
func TestEstimateCountsNewNodes(t *testing.T) {
	const accounts = 2000
	kept := New(1 << 30)
	root := types.EmptyRootHash
	for block := range byte(3) {
		kept.Begin(root, nil, nil)
		changed := make(map[common.Hash]*types.StateAccount)
		for i := range uint16(accounts) {
			address := crypto.Keccak256Hash([]byte{byte(i >> 8), byte(i)})
			changed[address] = types.NewEmptyStateAccount()
			changed[address].Nonce = uint64(block)
			before, err := kept.StorageRoot(address)
			if err == nil {
				err = kept.SetSlots(address, before, map[common.Hash]common.Hash{{block}: {1}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var nodes []evm.Node
		var err error
		if root, nodes, err = kept.Commit(changed); err != nil {
			t.Fatal(err)
		}
		if len(nodes) < 2*accounts {
			t.Fatalf("%d nodes changed", len(nodes))
		}
	}
	estimated := kept.bytes
	kept.drop(math.MaxUint32)
	counted := kept.bytes
	if estimated < counted || estimated > 2*counted {
		t.Errorf("%d bytes in memory were estimated, then counted as %d", estimated, counted)
	}
}
