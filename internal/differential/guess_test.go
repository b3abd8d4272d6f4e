package differential

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/evm/proven"
)

// TestGuessesEnd asks a geth for access lists in the form in which proven networks ask for them,
// with any gas. geth runs a call with the list of the run before until the list stays the same.
// With too little gas for its list it does not end before its request does.
func TestGuessesEnd(t *testing.T) {
	t.Parallel()
	_, _, geth, chain := gethChain(t, 100, 8)
	r := rand.New(rand.NewPCG(*seed, 26))
	asked := 0
	for _, i := range r.Perm(len(chain.Txs)) {
		tx := chain.Txs[i]
		if tx.To() == nil || len(tx.Data()) == 0 {
			continue
		}
		for gas := uint64(21_500); gas < 60_000; gas += 500 {
			call, err := json.Marshal(proven.Call{From: tx.From, To: tx.To(), Gas: &gas, Data: tx.Data()})
			if err != nil {
				t.Fatal(err)
			}
			var list json.RawMessage
			err = geth.Call(t.Context(), &list, "eth_createAccessList", json.RawMessage(call), "latest")
			if err != nil && !strings.Contains(err.Error(), "failed to apply transaction") {
				t.Fatalf("%s: %v", call, err)
			}
		}
		if asked++; asked == 10 {
			return
		}
	}
	t.Errorf("the chain has %d transactions that call contracts, want 10", asked)
}
