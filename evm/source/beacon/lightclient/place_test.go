package lightclient

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// The value at the place that Capella has for a hash is the same in each body from Deneb to Fulu,
// the parent of two unused leaves, so a schedule that says Capella does not make it a block.
func TestUnusedLeavesAreNoBlock(t *testing.T) {
	execution := &ExecutionHeader{BlockNumber: 7, BaseFee: (*baseFee)(big.NewInt(1)), BlockHash: common.Hash{1}, StateRoot: common.Hash{2}, ExcessBlobGas: 3}
	branch := []common.Hash{{3}, {4}, {5}, {6}} // from the execution block to the body
	body := execution.root(rank["fulu"])
	for i, sibling := range branch {
		if placeExecution>>i%2 == 1 {
			body = hashPair(sibling, body)
		} else {
			body = hashPair(body, sibling)
		}
	}
	header := Header{Beacon: BeaconHeader{Slot: 100, BodyRoot: body}, Execution: execution, ExecutionBranch: branch}
	chain := func(fork string) *Chain { return &Chain{SlotsPerEpoch: 8, Forks: []Fork{{Name: fork}}} }
	if err := chain("fulu").checkHeader(&header); err != nil {
		t.Fatal(err)
	}

	// Of 32 leaves the first 16 are as in Capella, with no blob gas used, and the last 15 are unused.
	one := hashPair([32]byte{}, [32]byte{})
	two := hashPair(one, one)
	added := merkleize([][32]byte{number(execution.ExcessBlobGas), {}, {}, {}, {}, {}, {}, {}})
	header.Execution, header.ExecutionBlockHash = nil, one
	header.ExecutionBranch = append([]common.Hash{one, two, added, execution.root(capella)}, branch...)
	if !provesLeaf(one, header.ExecutionBranch, placeHashCapella, body) {
		t.Fatal("the branch does not lead to the body")
	}
	if err := chain("capella").checkHeader(&header); !errors.Is(err, ErrFalse) {
		t.Errorf("two unused leaves as a block: %v, expected false data", err)
	}
}
