package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestSendSync: the answer has the receipt as soon as a block has the transaction.
func TestSendSync(t *testing.T) {
	o := serveOpen(t)
	request := requestOf(t, "eth_sendRawTransactionSync", hexutil.Bytes(o.signed(0)))
	answered := make(chan string)
	go func() { answered <- string(o.Answer(t.Context(), []byte(request), nil)) }()
	await.Until(t, "the transaction to wait", func() bool {
		pending, _ := o.chain.Pool().Stats()
		return o.chain.Pool().Version() > 0 && pending > 0
	})
	block := o.mine()
	var got struct {
		Result struct {
			BlockHash       common.Hash
			TransactionHash common.Hash
			Status          hexutil.Uint64
		}
	}
	answer := <-answered
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	if got.Result.BlockHash != block.Hash() || got.Result.TransactionHash != block.Transactions()[0].Hash() || got.Result.Status != 1 {
		t.Errorf("%s, expected the receipt in block %x", answer, block.Hash())
	}
}

// TestSendSyncEnds: a transaction that no block takes is taken nevertheless, and the error
// has its hash.
func TestSendSyncEnds(t *testing.T) {
	o := serveOpen(t)
	raw := o.signed(0)
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	answer := string(o.Answer(t.Context(), []byte(requestOf(t, "eth_sendRawTransactionSync", hexutil.Bytes(raw), 20)), nil))
	want := `"error":{"code":4,"message":"The transaction was added to the transaction pool but wasn't processed in 20ms","data":"` + tx.Hash().Hex() + `"}`
	if !strings.Contains(answer, want) {
		t.Errorf("%s, expected %s", answer, want)
	}
	if _, _, ok := o.chain.Pool().Get(tx.Hash()); !ok {
		t.Error("the pool does not have the transaction")
	}
}

// lateContext is a context whose time is over when done is closed.
type lateContext struct {
	context.Context
	done chan struct{}
}

func (c lateContext) Done() <-chan struct{} { return c.done }

func (c lateContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestSendSyncEndsWithTheRequest: if the time of the request is over first, the error is the same. Another one would not
// say that the transaction was taken.
func TestSendSyncEndsWithTheRequest(t *testing.T) {
	o := serveOpen(t)
	raw := o.signed(0)
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	ctx := lateContext{t.Context(), make(chan struct{})}
	answered := make(chan string)
	go func() {
		answered <- string(o.Answer(ctx, []byte(requestOf(t, "eth_sendRawTransactionSync", hexutil.Bytes(raw), 60_000)), nil))
	}()
	await.Until(t, "the transaction to wait", func() bool {
		_, _, ok := o.chain.Pool().Get(tx.Hash())
		return ok
	})
	close(ctx.done)
	answer := <-answered
	if !strings.Contains(answer, `"error":{"code":4,"message":"The transaction was added to the transaction pool but wasn't processed in `) ||
		!strings.Contains(answer, `"data":"`+tx.Hash().Hex()+`"`) {
		t.Errorf("%s, expected the error 4 with the hash %s", answer, tx.Hash())
	}
}

// TestFillTransaction: what is left out is filled in, and what is given stays.
func TestFillTransaction(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	fill := func(message map[string]any) *types.Transaction {
		t.Helper()
		var filled struct {
			Raw hexutil.Bytes
			Tx  json.RawMessage
		}
		o.ask(t, &filled, "eth_fillTransaction", message)
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(filled.Raw); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(filled.Tx), tx.Hash().Hex()) {
			t.Errorf("tx is %s, expected the transaction in raw", filled.Tx)
		}
		return tx
	}
	data := hexutil.Bytes(common.Hash{9}.Bytes())
	dynamic := fill(map[string]any{"from": o.sender, "to": logger, "data": data})
	if dynamic.Type() != types.DynamicFeeTxType || dynamic.Nonce() != 1 || dynamic.Gas() <= 21_000 || dynamic.GasFeeCap().Cmp(dynamic.GasTipCap()) < 0 ||
		dynamic.ChainId().Cmp(o.chain.Executor().Config().ChainID) != 0 {
		t.Errorf("%+v, expected nonce 1, gas and fees", dynamic)
	}
	if unused := fill(map[string]any{"from": o.sender, "to": logger, "data": data, "maxFeePerBlobGas": "0x1"}); unused.Gas() != dynamic.Gas() {
		t.Errorf("%+v, expected that a price of blobs without blobs is ignored", unused)
	}
	legacy := fill(map[string]any{"from": o.sender, "to": logger, "data": data, "gasPrice": "0x77359400", "nonce": "0x9", "gas": "0x5208"})
	if legacy.Type() != types.LegacyTxType || legacy.Nonce() != 9 || legacy.Gas() != 21_000 || legacy.GasPrice().Int64() != 0x77359400 {
		t.Errorf("%+v, expected what was given", legacy)
	}
	for want, message := range map[string]map[string]any{
		"contract creation without any data provided": {"from": o.sender},
		"both gasPrice and (maxFeePerGas":             {"to": logger, "gasPrice": "0x1", "maxFeePerGas": "0x1"},
		"need at least 1 blob":                        {"to": logger, "blobVersionedHashes": []any{}},
		`\"blobs\" cannot be filled in`:               {"from": o.sender, "to": logger, "blobs": []any{"0x00"}},
		"chainId does not match":                      {"to": logger, "gas": "0x5208", "chainId": "0x99"},
		`both \"data\" and \"input\"`:                 {"to": logger, "data": "0x12", "input": "0x34"},
	} {
		if answer := string(o.Answer(t.Context(), []byte(requestOf(t, "eth_fillTransaction", message)), nil)); !strings.Contains(answer, want) {
			t.Errorf("%v: %s, expected %q", message, answer, want)
		}
	}
}
