package query

import (
	"testing"

	"ashlar/evm/archive"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// inputOf returns the input of a block with an uncle and so many transactions.
func inputOf(t *testing.T, transactions int) *storedInput {
	t.Helper()
	var body types.Body
	for nonce := range transactions {
		body.Transactions = append(body.Transactions, types.NewTx(&types.LegacyTx{Nonce: uint64(nonce)}))
	}
	body.Uncles = []*types.Header{{Coinbase: common.Address{1}}}
	block := types.NewBlockWithHeader(new(types.Header)).WithBody(body)
	stored, err := archive.NewBody(block, make([]common.Address, transactions))
	if err != nil {
		t.Fatal(err)
	}
	return newStoredInput(&archive.Header{Header: block.Header(), Hash: block.Hash()}, &stored)
}

// TestUnclesNeedNoTransactions: the rewards of a block are found without decoding its transactions.
func TestUnclesNeedNoTransactions(t *testing.T) {
	allocations := func(transactions int) float64 {
		input := inputOf(t, transactions)
		return testing.AllocsPerRun(10, func() {
			if uncles, err := input.Uncles(); err != nil || len(uncles) != 1 || uncles[0].Coinbase != (common.Address{1}) {
				t.Errorf("the uncles are %v, %v", uncles, err)
			}
		})
	}
	// Those of other goroutines count, too. To decode a transaction takes several.
	if few, many := allocations(1), allocations(200); many > few+100 {
		t.Errorf("uncles take %v allocations in a block of 1 transaction, %v in one of 200", few, many)
	}
}

// TestReplaysShareTransactions: replays of a block decode its transactions at the same moment.
func TestReplaysShareTransactions(t *testing.T) {
	const count = 100
	input := inputOf(t, count)
	decode := func() {
		for i := range count {
			if tx, err := input.Transaction(i); err != nil || tx.Nonce() != uint64(i) || tx.Hash() == (common.Hash{}) {
				t.Errorf("transaction %d is %v, %v", i, tx, err)
			}
		}
	}
	raced.Together(decode, decode)
}
