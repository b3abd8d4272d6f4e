package network

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/internal/await"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/common"
)

// lender lends memory of an account that has a budget for itself.
type lender struct {
	budget  *limit.Budget
	holding limit.Holding
}

func (l *lender) Lend() limit.Lease { return limit.Lease{Budget: l.budget, Caller: &l.holding} }

// A search for logs for which the account has memory for the receipts of one block, but not of those that are asked for at once, finds
// them nevertheless.
func TestCheckedLogsWithLittleMemory(t *testing.T) {
	const logs = 450
	all, receipts := []map[string]any{emptyBlock(t, 0, common.Hash{})}, make(map[string]any)
	for number := int64(1); number <= 20; number++ {
		block, sent := blockWithLogs(t, number, common.HexToHash(all[number-1]["hash"].(string)), logs)
		all = append(all, block)
		receipts[fmt.Sprintf(`"%s"`, block["hash"])], receipts[fmt.Sprintf(`"%#x"`, number)] = sent, sent
	}
	n := node(t, forwardtest.Chain{})
	answer := answersOf(all)
	n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
		if method == "eth_getBlockReceipts" {
			return receipts[string(params[0])], nil, true
		}
		return answer(method, params)
	}
	w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, n)
	w.atHead(20)
	poor := &lender{budget: limit.NewBudget(512 << 10)} // of which one account gets half
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), limit.LenderKey{}, poor), await.Patience)
	defer cancel()
	answered, err := w.methods.Find("eth_getLogs").Handler(ctx, []byte(`[{"fromBlock":"0x1","toBlock":"0x14"}]`), nil)
	if err != nil {
		t.Errorf("with memory for one block at a time: %.300s, %v", answered, err)
	}
}
