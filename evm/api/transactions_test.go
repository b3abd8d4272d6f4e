package api_test

import (
	"strings"
	"testing"

	"ashlar/evm/api"

	"github.com/ethereum/go-ethereum/common"
)

// TestTransactionLeavesThePool: a transaction that a block takes from the pool after the blocks were searched, and before
// the pool is, is found in that block. An unknown one is looked for once as long as the head stays.
func TestTransactionLeavesThePool(t *testing.T) {
	o := serveOpen(t)
	sent := o.send(0)
	searches := 0
	handler := api.New(o.chain, api.Config{}).OfHash(func(out []byte, hash common.Hash) (answer []byte, sure bool, err error) {
		if searches++; searches == 1 {
			o.mine()
		}
		return append(out, "null"...), false, nil
	})
	answer, err := handler(t.Context(), []byte(`["`+sent.Hex()+`"]`), nil)
	if err != nil || searches != 1 || !strings.Contains(string(answer), `"transactionIndex":"0x0"`) {
		t.Errorf("%s, %v after %d searches, want the transaction in its block", answer, err, searches)
	}
	answer, err = handler(t.Context(), []byte(`["`+common.Hash{1}.Hex()+`"]`), nil)
	if err != nil || searches != 2 || string(answer) != "null" {
		t.Errorf("%s, %v after %d searches, want null", answer, err, searches)
	}
}
