package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// open is a chain that takes transactions, of which the test makes the blocks.
type open struct {
	*service
	t        *testing.T
	chain    *query.Chain
	follower *ingest.Follower
	sender   common.Address
}

func serveOpen(t *testing.T) *open {
	t.Helper()
	chain, follower := newFollower(t, ingest.DefaultDepths())
	chain.SetPool(pool.New(chain.Executor().Config(), pool.DefaultLimits()))
	o := &open{
		service: serveChain(chain), t: t, chain: chain, sender: crypto.PubkeyToAddress(testECDSA(t).PublicKey),
		follower: follower,
	}
	o.mine() // so that there is a block of this fork's time, and the pool has a head
	return o
}

// build makes a block of what waits, and the head.
func (o *open) build() *types.Block {
	o.t.Helper()
	block, _, err := o.follower.Build(o.t.Context(), func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
		return execute.Attributes{Timestamp: parent.Time + 12, GasLimit: parent.GasLimit, FeeRecipient: common.Address{0xc0}}, o.chain.Pool().Executable(baseFee, parent.GasLimit), nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return block
}

// mine is build, after which the pool is notified of the block.
func (o *open) mine() *types.Block {
	o.t.Helper()
	block := o.build()
	view, err := o.chain.View()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.chain.Pool().Reset(o.t.Context(), pool.Head{Header: block.Header(), State: view.State(block.NumberU64())}, nil); err != nil {
		o.t.Fatal(err)
	}
	return block
}

func testECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// send sends a call of the contract that writes a log, and returns its hash.
func (o *open) send(nonce uint64) common.Hash {
	o.t.Helper()
	raw := o.signed(nonce)
	var hash common.Hash
	o.ask(o.t, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
	return hash
}

func (o *open) signed(nonce uint64) []byte {
	o.t.Helper()
	config := o.chain.Executor().Config()
	tx := types.MustSignNewTx(testECDSA(o.t), types.LatestSigner(config), &types.DynamicFeeTx{
		ChainID: config.ChainID, Nonce: nonce, Gas: 100_000, GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(2), To: &logger,
		Data: common.Hash{9, 31: byte(nonce)}.Bytes(),
	})
	raw, err := tx.MarshalBinary()
	if err != nil {
		o.t.Fatal(err)
	}
	return raw
}

// members asks for an object and returns its members.
func (o *open) members(method string, args ...any) map[string]json.RawMessage {
	o.t.Helper()
	var members map[string]json.RawMessage
	o.ask(o.t, &members, method, args...)
	return members
}

func (o *open) expectNull(what string, members map[string]json.RawMessage, names ...string) {
	o.t.Helper()
	for _, name := range names {
		if value, ok := members[name]; !ok || string(value) != "null" {
			o.t.Errorf("%s: %s is %s, expected null", what, name, value)
		}
	}
}

// A transaction is seen as pending from the moment it was taken, and as included
// once a block has it.
func TestPending(t *testing.T) {
	o := serveOpen(t)
	hash := o.send(0)
	queued := o.send(2)
	for _, h := range []common.Hash{hash, queued} {
		o.expectNull("a waiting transaction", o.members("eth_getTransactionByHash", h), "blockHash", "blockNumber", "transactionIndex")
	}
	for _, method := range []string{"eth_getRawTransactionByHash", "debug_getRawTransaction"} {
		var raw hexutil.Bytes
		if o.ask(t, &raw, method, queued); !bytes.Equal(raw, o.signed(2)) {
			t.Errorf("%s of a waiting transaction is %s, expected what was sent", method, raw)
		}
	}
	if got := string(o.answer(t, "eth_getTransactionReceipt", hash).Result); got != "null" {
		t.Errorf("a waiting transaction has the receipt %s", got)
	}
	for block, want := range map[string]uint64{"latest": 0, "pending": 1} {
		var nonce hexutil.Uint64
		if o.ask(t, &nonce, "eth_getTransactionCount", o.sender, block); uint64(nonce) != want {
			t.Errorf("the nonce at %s is %d, expected %d", block, nonce, want)
		}
	}

	block := o.members("eth_getBlockByNumber", "pending", true)
	o.expectNull("the pending block", block, "hash", "nonce", "logsBloom", "number")
	var transactions []map[string]json.RawMessage
	if err := json.Unmarshal(block["transactions"], &transactions); err != nil || len(transactions) != 1 {
		t.Fatalf("the pending block has the transactions %s, expected one", block["transactions"])
	}
	o.expectNull("a transaction of the pending block", transactions[0], "blockHash", "blockNumber", "transactionIndex")
	var logs []map[string]json.RawMessage
	o.ask(t, &logs, "eth_getLogs", map[string]any{"fromBlock": "latest", "toBlock": "pending"})
	if len(logs) != 1 {
		t.Fatalf("%d logs up to the pending block, expected 1", len(logs))
	}
	o.expectNull("a log of the pending block", logs[0], "logIndex", "transactionIndex", "transactionHash", "blockHash", "blockNumber")
	if o.ask(t, &logs, "eth_getLogs", map[string]any{"fromBlock": "0x0"}); len(logs) != 0 {
		t.Errorf("%d logs up to the latest block, expected none", len(logs))
	}
	o.expectPendingEvents()
	// Every method that takes a block takes this one.
	for _, method := range []string{"eth_getBalance", "eth_getCode"} {
		o.ask(t, new(hexutil.Bytes), method, o.sender, "pending")
	}
	o.ask(t, new(json.RawMessage), "eth_getProof", logger, []string{"0x5"}, "pending")
	o.ask(t, new(json.RawMessage), "eth_call", map[string]any{"to": logger}, "pending")
	if got := string(o.answer(t, "eth_getBlockReceipts", "pending").Result); got != "null" {
		t.Errorf("the pending block has the receipts %s", got)
	}

	mined := o.mine()
	receipt := o.members("eth_getTransactionReceipt", hash)
	if want := `"` + mined.Hash().Hex() + `"`; string(receipt["blockHash"]) != want {
		t.Errorf("the receipt names block %s, expected %s", receipt["blockHash"], want)
	}
	if status := o.members("txpool_status"); string(status["pending"]) != `"0x0"` || string(status["queued"]) != `"0x1"` {
		t.Errorf("after the block: %s pending and %s queued, expected 0 and 1", status["pending"], status["queued"])
	}
	var empty hexutil.Uint64
	if o.ask(t, &empty, "eth_getBlockTransactionCountByNumber", "pending"); empty != 0 {
		t.Errorf("the pending block has %d transactions, expected none", empty)
	}
}

// For strict clients, the pending block has a number and a bloom.
func TestPendingBlockOfStrictClients(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	o.service = serveConfigured(o.chain, api.Config{StrictClients: true})
	block := o.members("eth_getBlockByNumber", "pending", false)
	o.expectNull("the pending block", block, "hash", "nonce")
	if number, bloom := string(block["number"]), string(block["logsBloom"]); number != `"0x2"` || len(bloom) != len(`"0x"`)+512 || strings.Trim(bloom[3:515], "0") == "" {
		t.Errorf("the pending block has the number %s and the bloom %s", number, bloom)
	}
}

// expectPendingEvents expects that rollup_getEvents includes the event of the pending block
// exactly if the filter names that block.
func (o *open) expectPendingEvents() {
	o.t.Helper()
	type page struct {
		Events []map[string]json.RawMessage `json:"events"`
		Token  *string                      `json:"continuation_token"`
	}
	for _, test := range []struct {
		from, to any
		want     int
	}{
		{"latest", "pending", 1}, {"pending", "pending", 1}, {"pending", "latest", 0}, {"latest", "latest", 0},
		{"pending", nil, 0}, {nil, "pending", 1}, {nil, nil, 0}, {nil, map[string]any{"block_number": 1}, 0}, {map[string]any{"block_number": 1}, "pending", 1},
	} {
		var got page
		o.ask(o.t, &got, "rollup_getEvents", map[string]any{"from_block": test.from, "to_block": test.to, "chunk_size": 10})
		if len(got.Events) != test.want || got.Token != nil {
			o.t.Errorf("%v to %v: %d events, token %v, want %d", test.from, test.to, len(got.Events), got.Token, test.want)
		}
		for _, event := range got.Events {
			if len(event["transaction_hash"]) == 0 || event["block_hash"] != nil || event["block_number"] != nil {
				o.t.Errorf("a pending event is %v", event)
			}
		}
	}
}

// A transaction that is to be passed on is taken only if that succeeds, and until then
// nothing of it is seen.
func TestPassedOn(t *testing.T) {
	o := serveOpen(t)
	var passed [][]byte
	var refusal error
	config := api.Config{Forward: func(_ context.Context, raw []byte) error {
		passed = append(passed, raw)
		return refusal
	}}
	forwarding := jsonrpc.NewServer(methodsOf(api.New(o.chain, config)).Handlers(), jsonrpc.Config{})
	send := func() string {
		request := requestOf(t, "eth_sendRawTransaction", hexutil.Bytes(o.signed(0)))
		return string(forwarding.Answer(t.Context(), []byte(request), nil))
	}
	before := o.chain.Pool().Version()
	for _, test := range []struct {
		refusal error
		want    string
	}{
		{&jsonrpc.Error{Code: -32003, Message: "the node says no"}, `"error":{"code":-32003,"message":"the node says no"}`},
		{errors.New("no node there"), `"error":{"code":-32000,"message":"no node there"}`},
		{nil, `"result":"0x`},
	} {
		refusal = test.refusal
		if got := send(); !strings.Contains(got, test.want) {
			t.Errorf("where the node says %v: %s, expected %s", test.refusal, got, test.want)
		}
		if changed := o.chain.Pool().Version() != before; changed != (test.refusal == nil) {
			t.Errorf("where the node says %v: the pool has changed: %t", test.refusal, changed)
		}
	}
	if len(passed) != 3 || !bytes.Equal(passed[2], o.signed(0)) {
		t.Errorf("%d transactions were passed on, expected 3, as they were sent", len(passed))
	}
	// Sent again, it is passed on again: the node may have lost it.
	for _, test := range []struct {
		refusal error
		want    string
	}{
		{&jsonrpc.Error{Code: -32000, Message: "already known"}, `"error":{"code":-32000,"message":"already known"}`},
		{nil, `"result":"0x`},
	} {
		refusal = test.refusal
		if got := send(); !strings.Contains(got, test.want) {
			t.Errorf("sent again, where the node says %v: %s, expected %s", test.refusal, got, test.want)
		}
	}
	if pending, _ := o.chain.Pool().Stats(); len(passed) != 5 || pending != 1 {
		t.Errorf("%d transactions were passed on and %d are pending, expected 5 and 1", len(passed), pending)
	}
}

func TestPoolContent(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	o.send(1)
	o.send(5)
	var content map[string]map[string]map[string]struct{ Nonce hexutil.Uint64 }
	o.ask(t, &content, "txpool_content")
	pending, queued := content["pending"][o.sender.Hex()], content["queued"][o.sender.Hex()]
	if len(pending) != 2 || pending["1"].Nonce != 1 || len(queued) != 1 || queued["5"].Nonce != 5 {
		t.Errorf("pending %v and queued %v", pending, queued)
	}
	var from map[string]map[string]struct{ Nonce hexutil.Uint64 }
	o.ask(t, &from, "txpool_contentFrom", o.sender)
	if len(from["pending"]) != 2 || len(from["queued"]) != 1 {
		t.Errorf("from the sender: %v", from)
	}
	var lines map[string]map[string]map[string]string
	o.ask(t, &lines, "txpool_inspect")
	if line := lines["queued"][o.sender.Hex()]["5"]; !strings.Contains(line, " wei + 100000 gas × ") {
		t.Errorf("inspected: %q", line)
	}
	if o.ask(t, &from, "txpool_contentFrom", logger); len(from["pending"]) != 0 {
		t.Errorf("from another: %v", from)
	}
}

// The node decides about a transaction that any chain would take.
func TestUnprotectedIsPassedOn(t *testing.T) {
	o := serveOpen(t)
	unprotected := types.MustSignNewTx(testECDSA(t), types.HomesteadSigner{}, &types.LegacyTx{GasPrice: big.NewInt(1e11), Gas: 21000, To: &logger})
	raw, err := unprotected.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	refusal := error(&jsonrpc.Error{Code: -32000, Message: "only replay-protected (EIP-155) transactions allowed over RPC"})
	config := api.Config{Forward: func(context.Context, []byte) error { return refusal }}
	forwarding := jsonrpc.NewServer(methodsOf(api.New(o.chain, config)).Handlers(), jsonrpc.Config{})
	for _, want := range []string{`"error":{"code":-32000,"message":"only replay-protected (EIP-155) transactions allowed over RPC"}`, `"result":"` + unprotected.Hash().Hex()} {
		got := string(forwarding.Answer(t.Context(), []byte(requestOf(t, "eth_sendRawTransaction", hexutil.Bytes(raw))), nil))
		if !strings.Contains(got, want) {
			t.Errorf("where the node says %v: %s, expected %s", refusal, got, want)
		}
		refusal = nil
	}
}

func TestSendIsRefused(t *testing.T) {
	o := serveOpen(t)
	o.send(0)
	set, err := types.MustSignNewTx(testECDSA(t), types.LatestSigner(o.chain.Executor().Config()), &types.SetCodeTx{
		ChainID: uint256.MustFromBig(o.chain.Executor().Config().ChainID), Nonce: 1, Gas: 100_000, GasFeeCap: uint256.NewInt(1e11), GasTipCap: new(uint256.Int),
	}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		raw   hexutil.Bytes
		words string
	}{
		{o.signed(0), "already known"},
		{hexutil.Bytes{}, "typed transaction too short"},
		{hexutil.Bytes{0xc0}, "rlp: too few elements"},
		{hexutil.Bytes{9, 1}, "transaction type not supported"},
		{set, "set code tx must have at least one authorization tuple"},
	} {
		failure := string(o.answer(t, "eth_sendRawTransaction", c.raw).Error)
		if !strings.Contains(failure, `"code":-32000`) || !strings.Contains(failure, c.words) {
			t.Errorf("%x: %s, expected -32000 %q", []byte(c.raw), failure, c.words)
		}
	}
	settled := serveMade(t)
	if failure := string(settled.answer(t, "eth_sendRawTransaction", hexutil.Bytes(o.signed(0))).Error); !strings.Contains(failure, "accepts no transactions") {
		t.Errorf("a network of files takes a transaction: %s", failure)
	}
}
