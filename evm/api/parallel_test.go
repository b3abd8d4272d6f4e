package api_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// TestParallel asks the same questions at once and one after the other: rows lie
// in buffers that are used again, and no answer may show another's.
func TestParallel(t *testing.T) {
	s := serveMade(t)
	type question struct{ request, answer string }
	var questions []question
	for number, block := range s.blocks {
		questions = append(questions,
			question{request: requestOf(t, "eth_getBlockByNumber", hexutil.Uint64(number), true)},
			question{request: requestOf(t, "eth_getBlockReceipts", block.Hash())})
		for _, tx := range block.Transactions() {
			questions = append(questions, question{request: requestOf(t, "eth_getTransactionReceipt", tx.Hash())})
		}
	}
	for i, q := range questions {
		questions[i].answer = string(s.Answer(t.Context(), []byte(q.request), nil))
	}
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for i := range questions {
				q := questions[(i*(2*worker+1))%len(questions)]
				if got := string(s.Answer(t.Context(), []byte(q.request), nil)); got != q.answer {
					t.Errorf("%s: %.200s, before it was %.200s", q.request, got, q.answer)
				}
			}
		})
	}
	workers.Wait()
}

// requestOf is a request.
func requestOf(t *testing.T, method string, args ...any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": args})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
