package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/fakenode"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// TestCheckedNewestState: a node that proves the state of its newest block only may have gone on to the next one
// when it is asked. Such a question can be repeated, one about an older block cannot.
func TestCheckedNewestState(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	head := right[len(right)-1]
	node, err := fakenode.New(fakenode.Options{
		ChainID: genesis.Config.ChainID.Uint64(), Raw: true, Receipts: receipts, Between: withoutProofs,
	}, right[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	node.Set(right, 0, 0)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(node), Quorum: 1})
	s.await(head)
	const again = "the nodes do not have the state of the newest block any more: try again"
	refused := func(method, params string, code int, message string) {
		t.Helper()
		_, err := s.try(new(json.RawMessage), method, params)
		var got *jsonrpc.Error
		if !errors.As(err, &got) || got.Code != code || got.Message != message {
			t.Errorf("%s%s: %v, want %d %s", method, params, err, code, message)
		}
	}
	newest, older := fmt.Sprintf("%#x", head.NumberU64()), fmt.Sprintf("%#x", head.NumberU64()-1)
	for _, test := range []struct {
		block, message string
		code           int
	}{
		{"latest", again, jsonrpc.CodeServer},
		{newest, again, jsonrpc.CodeServer},
		{older, "pruned history unavailable: block or historical state is not available", jsonrpc.CodePruned},
	} {
		for method, params := range map[string]string{
			"eth_getBalance": `["0x00000000000000000000000000000000000000aa",%q]`,
			"eth_getProof":   `["0x00000000000000000000000000000000000000aa",[],%q]`,
			"eth_call":       `[{"to":"0x00000000000000000000000000000000000000aa"},%q]`,
		} {
			refused(method, fmt.Sprintf(params, test.block), test.code, test.message)
		}
	}
	// The pool reads the sender's state. The error has neither the URL nor the words of the node.
	tx := types.MustSignNewTx(crypto.ToECDSAUnsafe(common.Hash{31: 1}.Bytes()), types.LatestSigner(genesis.Config), &types.DynamicFeeTx{
		ChainID: genesis.Config.ChainID, Gas: 100_000, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(500 * params.GWei),
		To: new(common.Address),
	})
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	refused("eth_sendRawTransaction", fmt.Sprintf(`["%#x"]`, raw), jsonrpc.CodeServer, again)
}

// withoutProofs refuses eth_getProof as reth does for blocks out of its window.
func withoutProofs(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		batch := []call{{}}
		if json.Unmarshal(body, &batch) != nil {
			batch = []call{{}}
			_ = json.Unmarshal(body, &batch[0]) // the node answers what is no call
		}
		var answers []string
		for _, c := range batch {
			if c.Method == "eth_getProof" {
				answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"distance to target block exceeds maximum proof window"}}`, c.ID))
			}
		}
		if len(answers) > 0 {
			answer := strings.Join(answers, ",")
			if body[0] == '[' {
				answer = "[" + answer + "]"
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		to.ServeHTTP(w, r)
	})
}
