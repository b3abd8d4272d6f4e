package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/chain/rollup"

	"github.com/ethereum/go-ethereum/common"
)

// makeChain makes blocks upon a parent, or from number first on where it is nil.
// Blocks of another branch have other hashes.
func makeChain(parent *rollup.Block, first uint64, count int, branch uint64) []*rollup.Block {
	var blocks []*rollup.Block
	for range count {
		b := &rollup.Block{Header: rollup.Header{Number: first, Status: rollup.AcceptedOnL2, Version: "0.13.1"}}
		if parent != nil {
			b.Number, b.Parent = parent.Number+1, parent.Hash
		}
		b.Timestamp = 1000 + b.Number
		b.Hash = rollup.FeltOf(branch<<32 | b.Number + 1)
		event := rollup.Event{From: rollup.FeltOf(branch), Keys: []rollup.Felt{rollup.FeltOf(b.Number)}}
		b.Transactions = []rollup.Transaction{{
			Hash: rollup.FeltOf(branch<<40 | b.Number), Kind: rollup.Invoke, Version: 1,
			Receipt: rollup.Receipt{Events: []rollup.Event{event}},
		}}
		blocks = append(blocks, b)
		parent = b
	}
	return blocks
}

// fakeNode is a node that serves a chain, in the form of one version of the
// specification, and misbehaves as it is told.
type fakeNode struct {
	*httptest.Server
	spec    int // the minor number of the version: 6 to 10
	chainID rollup.Felt

	mu       sync.Mutex
	blocks   []*rollup.Block
	asked    []question
	under    int // way now
	most     int // that were under way at a time
	mischief func(w http.ResponseWriter, q question, good []byte) bool
}

// question is one request.
type question struct {
	method string
	number uint64 // of the block that is asked for
	nth    int    // of all requests, from 1
	id     json.RawMessage
}

func newFakeNode(t testing.TB, spec int, blocks []*rollup.Block) *fakeNode {
	t.Helper()
	f := &fakeNode{spec: spec, blocks: blocks, chainID: rollup.FeltOf(77)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage
		Method string
		Params []map[string]uint64
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := question{method: request.Method, id: request.ID}
	if len(request.Params) == 1 {
		q.number = request.Params[0]["block_number"]
	}
	f.mu.Lock()
	f.under++
	f.most = max(f.most, f.under)
	f.asked = append(f.asked, q)
	q.nth = len(f.asked)
	good, mischief := f.answer(q), f.mischief
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.under--
		f.mu.Unlock()
	}()
	if mischief == nil || !mischief(w, q, good) {
		w.Write(good)
	}
}

// answer is the right answer to a question.
func (f *fakeNode) answer(q question) []byte {
	fail := func(code int, message string) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","error":{"code":%d,"message":%q,"data":null},"id":%s}`, code, message, q.id)
	}
	var result any
	switch q.method {
	case "starknet_chainId":
		result = f.chainID.String()
	case "starknet_blockHashAndNumber":
		if len(f.blocks) == 0 {
			return fail(codeNoBlocks, "There are no blocks")
		}
		last := f.blocks[len(f.blocks)-1]
		result = map[string]any{"block_hash": last.Hash.String(), "block_number": last.Number}
	case "starknet_getBlockWithReceipts", "starknet_getBlockWithTxHashes":
		at := slices.IndexFunc(f.blocks, func(b *rollup.Block) bool { return b.Number == q.number })
		if at < 0 {
			return fail(codeBlockNotFound, "Block not found")
		}
		result = encodeBlock(f.blocks[at], f.spec, q.method == "starknet_getBlockWithTxHashes")
	default:
		return fail(codeMethodNotFound, "Method not found")
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fail(-32603, err.Error())
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","result":%s,"id":%s}`, text, q.id)
}

// set changes the chain that is served.
func (f *fakeNode) set(blocks []*rollup.Block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocks = blocks
}

// questions is how often a method was asked.
func (f *fakeNode) questions(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.asked {
		if q.method == method {
			n++
		}
	}
	return n
}

// options are for tests: nothing takes long.
func (f *fakeNode) options() Options {
	return Options{
		URL: f.URL + "/secret-key", Poll: time.Millisecond, FirstPause: time.Millisecond, LongestPause: 4 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// keptChain is a [Chain] in memory. It ends the following when it has come to a
// block.
type keptChain struct {
	t       testing.TB
	until   common.Hash
	blocks  []*rollup.Block
	reverts []chain.Ref
}

var errArrived = errors.New("arrived")

func (c *keptChain) Held(context.Context) (first, head chain.Ref, ok bool, err error) {
	if len(c.blocks) == 0 {
		return first, head, false, nil
	}
	return c.blocks[0].Ref(), c.blocks[len(c.blocks)-1].Ref(), true, nil
}

func (c *keptChain) Hash(_ context.Context, number uint64) (common.Hash, error) {
	at := slices.IndexFunc(c.blocks, func(b *rollup.Block) bool { return b.Number == number })
	if at < 0 {
		return common.Hash{}, fmt.Errorf("asked for block %d, which is not held", number)
	}
	return common.Hash(c.blocks[at].Hash), nil
}

func (c *keptChain) Append(_ context.Context, b *rollup.Block) error {
	if n := len(c.blocks); n > 0 && (b.Parent != c.blocks[n-1].Hash || b.Number != c.blocks[n-1].Number+1) {
		c.t.Errorf("block %d (%s) was appended to block %d", b.Number, b.Hash, c.blocks[n-1].Number)
	}
	c.blocks = append(c.blocks, b)
	return c.arrived()
}

func (c *keptChain) Revert(_ context.Context, to chain.Ref) error {
	at := slices.IndexFunc(c.blocks, func(b *rollup.Block) bool { return b.Ref() == to })
	if at < 0 || at == len(c.blocks)-1 {
		c.t.Errorf("reverted to %s, which is no ancestor of the head", to)
	}
	c.blocks = c.blocks[:at+1]
	c.reverts = append(c.reverts, to)
	return c.arrived()
}

func (c *keptChain) arrived() error {
	if n := len(c.blocks); n > 0 && common.Hash(c.blocks[n-1].Hash) == c.until {
		return errArrived
	}
	return nil
}

// followTo follows a node until the last of these blocks is held, and compares.
func followTo(t testing.TB, n *Node, first uint64, held []*rollup.Block, want []*rollup.Block) *keptChain {
	t.Helper()
	kept := &keptChain{t: t, until: common.Hash(want[len(want)-1].Hash), blocks: slices.Clone(held)}
	if err := n.Follow(t.Context(), first, kept); !errors.Is(err, errArrived) {
		t.Fatalf("following ended with %v, expected to arrive", err)
	}
	if len(kept.blocks) != len(want) {
		t.Fatalf("%d blocks are held, expected %d", len(kept.blocks), len(want))
	}
	for i := range want {
		if kept.blocks[i].Hash != want[i].Hash {
			t.Fatalf("block %d is %s, expected %s", want[i].Number, kept.blocks[i].Hash, want[i].Hash)
		}
	}
	return kept
}

func newNode(t testing.TB, options Options) *Node {
	t.Helper()
	n, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// encodeBlock is a block in the form of a version of the specification, with
// its transactions' hashes alone or with all of them.
func encodeBlock(b *rollup.Block, spec int, hashesOnly bool) map[string]any {
	price := func(p rollup.GasPrice) map[string]string {
		return map[string]string{"price_in_wei": p.Wei.String(), "price_in_fri": p.Fri.String()}
	}
	out := map[string]any{
		"status":     map[rollup.Status]string{rollup.AcceptedOnL2: "ACCEPTED_ON_L2", rollup.AcceptedOnL1: "ACCEPTED_ON_L1"}[b.Status],
		"block_hash": b.Hash.String(), "parent_hash": b.Parent.String(), "block_number": b.Number, "new_root": b.NewRoot.String(),
		"timestamp": b.Timestamp, "sequencer_address": b.Sequencer.String(), "starknet_version": b.Version, "l1_gas_price": price(b.L1GasPrice),
	}
	if spec >= 7 {
		out["l1_data_gas_price"] = price(b.L1DataGasPrice)
		out["l1_da_mode"] = map[rollup.L1DataMode]string{rollup.Calldata: "CALLDATA", rollup.Blob: "BLOB"}[b.L1DataMode]
	}
	if spec >= 8 {
		out["l2_gas_price"] = price(b.L2GasPrice)
	}
	if spec >= 10 {
		c := b.Commitments
		out["transaction_commitment"], out["event_commitment"] = c.Transactions.String(), c.Events.String()
		out["receipt_commitment"], out["state_diff_commitment"] = c.Receipts.String(), c.StateDiff.String()
		out["state_diff_length"], out["transaction_count"], out["event_count"] = c.StateDiffLength, len(b.Transactions), b.EventCount()
	}
	transactions := []any{}
	for i := range b.Transactions {
		if hashesOnly {
			transactions = append(transactions, b.Transactions[i].Hash.String())
		} else {
			transactions = append(transactions, encodeTransaction(&b.Transactions[i], spec))
		}
	}
	out["transactions"] = transactions
	return out
}

func encodeTransaction(t *rollup.Transaction, spec int) map[string]any {
	transaction := map[string]any{
		"type": t.Kind.String(), "version": rollup.FeltOf(t.Version).String(), "signature": texts(t.Signature), "calldata": []string{"0x1"},
	}
	receipt := map[string]any{
		"type": t.Kind.String(), "transaction_hash": t.Hash.String(), "finality_status": "ACCEPTED_ON_L2",
		"actual_fee":       map[string]string{"amount": t.Receipt.ActualFee.String(), "unit": "WEI"},
		"execution_status": "SUCCEEDED",
	}
	if t.Receipt.Reverted {
		receipt["execution_status"], receipt["revert_reason"] = "REVERTED", t.Receipt.RevertReason
	}
	if spec >= 8 {
		receipt["execution_resources"] = map[string]uint64{"l1_gas": t.Receipt.Gas.L1, "l1_data_gas": t.Receipt.Gas.L1Data, "l2_gas": t.Receipt.Gas.L2}
	} else {
		receipt["execution_resources"] = map[string]any{"steps": 100, "data_availability": map[string]int{"l1_gas": 5, "l1_data_gas": 6}}
	}
	if !t.ContractAddress.IsZero() {
		receipt["contract_address"] = t.ContractAddress.String()
	}
	if t.Kind == rollup.L1Handler {
		receipt["message_hash"] = t.MessageHash.Hex()
	}
	messages, events := []any{}, []any{}
	for _, m := range t.Receipt.Messages {
		messages = append(messages, map[string]any{"from_address": m.From.String(), "to_address": m.To.String(), "payload": texts(m.Payload)})
	}
	for _, e := range t.Receipt.Events {
		events = append(events, map[string]any{"from_address": e.From.String(), "keys": texts(e.Keys), "data": texts(e.Data)})
	}
	receipt["messages_sent"], receipt["events"] = messages, events
	return map[string]any{"transaction": transaction, "receipt": receipt}
}

func texts(felts []rollup.Felt) []string {
	out := []string{}
	for _, f := range felts {
		out = append(out, f.String())
	}
	return out
}
