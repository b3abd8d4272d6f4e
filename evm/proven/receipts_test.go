package proven

import (
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// The root of receipts covers every status but 0 as success, and one byte of a state root as a status.
// A node that sends another form of an outcome than the root's has lied.
func TestOutcomeHasOneForm(t *testing.T) {
	for name, change := range map[string]func(receipt map[string]any){
		"status 2":          func(r map[string]any) { r["status"] = "0x2" },
		"root of one byte":  func(r map[string]any) { r["root"] = "0x01" },
		"root for a status": func(r map[string]any) { r["root"] = "0x01"; delete(r, "status") },
	} {
		c := newTestChain(t, 3)
		liar, honest := c.node("liar"), c.node("honest")
		nodes := newTestNodes(liar, honest)
		f := follow(t, nodes, 1)
		f.stepTo(t, c.blocks[3])
		liar.objects, honest.objects = true, true
		liar.alter = func(method string, result any) any {
			if method != "eth_getBlockReceipts" {
				return result
			}
			var receipts []map[string]any
			text, err := json.Marshal(result)
			if err == nil {
				err = json.Unmarshal(text, &receipts)
			}
			if err != nil {
				t.Error(err)
			}
			change(receipts[0])
			return receipts
		}
		receipts, err := f.remote.receiptsOf(t.Context(), c.blocks[2])
		if err != nil || receipts[0].Status != types.ReceiptStatusSuccessful || len(receipts[0].PostState) > 0 {
			t.Errorf("%s: the receipts are %v, %v", name, receipts, err)
		}
		if nodes.aside["liar"] == nil || nodes.aside["honest"] != nil {
			t.Errorf("%s: set aside: %v", name, nodes.aside)
		}
	}
}
