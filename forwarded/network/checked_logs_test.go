package network

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"ashlar/forwarded/forwardtest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
)

// blockWithLogs returns a block whose only transaction has emitted logs, and its receipts, as nodes
// send them.
func blockWithLogs(t *testing.T, number int64, parent common.Hash, logs int) (block map[string]any, receipts []map[string]any) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	tx := types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{To: &forwardtest.Emitter, Gas: 21_000, GasPrice: big.NewInt(1), Value: new(big.Int)})
	receipt := &types.Receipt{Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: 21_000}
	var sent []map[string]any
	for range logs {
		receipt.Logs = append(receipt.Logs, &types.Log{Address: forwardtest.Emitter})
		sent = append(sent, map[string]any{"address": forwardtest.Emitter, "topics": []common.Hash{}, "data": "0x"})
	}
	receipt.Bloom = types.CreateBloom(receipt)
	header := &types.Header{
		Number: big.NewInt(number), ParentHash: parent, Difficulty: new(big.Int), UncleHash: types.EmptyUncleHash, BaseFee: big.NewInt(1), Bloom: receipt.Bloom,
		TxHash:      types.DeriveSha(types.Transactions{tx}, trie.NewStackTrie(nil)),
		ReceiptHash: types.DeriveSha(types.Receipts{receipt}, trie.NewStackTrie(nil)),
	}
	text, err := json.Marshal(header)
	if err == nil {
		err = json.Unmarshal(text, &block)
	}
	if err != nil {
		t.Fatal(err)
	}
	block["transactions"], block["uncles"] = []any{tx}, []any{}
	return block, []map[string]any{{"status": "0x1", "cumulativeGasUsed": hexutil.Uint64(21_000), "logs": sent}}
}

// The cap of 10,000 logs holds for a checked block that is named by its hash, too.
func TestCheckedLogsAreCapped(t *testing.T) {
	const most = 10_000
	for _, count := range []int{most, most + 1} {
		first := emptyBlock(t, 0, common.Hash{})
		block, receipts := blockWithLogs(t, 1, common.HexToHash(first["hash"].(string)), count)
		n := node(t, forwardtest.Chain{})
		answer := answersOf([]map[string]any{first, block})
		n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
			if method == "eth_getBlockReceipts" {
				return receipts, nil, true
			}
			return answer(method, params)
		}
		w := serve(t, newStore(t), func(e *Entries) { e.Checked = checkHeaders }, n)
		w.atHead(1)
		want := "…blockHash"
		if count > most {
			want = "-32005 query returned more than 10000 results"
		}
		w.expect("eth_getLogs", fmt.Sprintf(`[{"blockHash":"%s"}]`, block["hash"]), want)
		w.expect("eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x1"}]`, want)
	}
}
