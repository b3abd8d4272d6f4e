package ingest_test

import (
	"math/big"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"

	"github.com/ethereum/go-ethereum/core/types"
)

// Our block builder and go-ethereum's make the same blocks of the same contents.
func TestBuildMakesTheBlocksOfGoEthereum(t *testing.T) {
	network, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := network.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	g := newTarget(t)
	for _, want := range ingesttest.Chain(t) {
		block, leftOut, err := g.importer.Build(t.Context(), func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
			c, err := traffic.Next(want.NumberU64(), baseFee)
			return execute.Attributes{
				Timestamp: c.Timestamp, FeeRecipient: c.FeeRecipient, PrevRandao: c.PrevRandao, ParentBeaconRoot: c.ParentBeaconRoot, SlotNumber: c.SlotNumber,
				GasLimit: parent.GasLimit, Withdrawals: c.Withdrawals,
			}, c.Transactions, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(leftOut) > 0 {
			t.Errorf("block %d leaves out %d transactions: %v", want.NumberU64(), len(leftOut), leftOut[0].Err)
		}
		if block.Hash() != want.Hash() {
			t.Fatalf("block %d is %x, expected %x", want.NumberU64(), block.Hash(), want.Hash())
		}
	}
}
