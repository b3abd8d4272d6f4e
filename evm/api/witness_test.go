package api_test

import (
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/stateless"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// Every block can be executed by go-ethereum from its witness alone, and not from one
// that lacks any node.
func TestExecutionWitness(t *testing.T) {
	s := serveMade(t)
	for number := 1; number <= madeBlocks; number++ {
		block := s.blocks[number]
		var raw json.RawMessage
		s.ask(t, &raw, "debug_executionWitness", block.Hash())
		var found stateless.ExtWitness
		if err := json.Unmarshal(raw, &found); err != nil {
			t.Fatal(err)
		}
		run := func(ext stateless.ExtWitness) error {
			header := block.Header()
			header.Root, header.ReceiptHash = common.Hash{}, common.Hash{}
			witness, err := stateless.NewWitness(header, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := witness.FromExtWitness(&ext); err != nil {
				t.Fatal(err)
			}
			root, receipts, err := core.ExecuteStateless(t.Context(), madeGenesis().Config, vm.Config{}, types.NewBlockWithHeader(header).WithBody(*block.Body()), witness)
			if err == nil && (root != block.Root() || receipts != block.ReceiptHash()) {
				t.Errorf("block %d: roots %s and %s, expected %s and %s", number, root, receipts, block.Root(), block.ReceiptHash())
			}
			return err
		}
		if err := run(found); err != nil {
			t.Errorf("block %d: %v", number, err)
		}
		if len(found.State) < 3 {
			t.Errorf("block %d: %d nodes", number, len(found.State))
		}
		if short := found; len(short.State) > 0 {
			short.State = nil
			if run(short) == nil {
				t.Errorf("block %d runs without nodes", number)
			}
		}
	}
}
