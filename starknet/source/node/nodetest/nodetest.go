// Package nodetest provides a Starknet node for tests. It serves blocks over JSON-RPC in the
// form of any version of the specification, and can be made to misbehave.
package nodetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"ashlar/starknet"
)

// Node is an HTTP server that serves a chain in the form of one version of the specification.
type Node struct {
	*httptest.Server
	ChainID starknet.Felt
	// Mischief is called with each request and its correct response. If it returns true, it
	// has handled the request itself. It must be set before the first request, and must be
	// safe for concurrent use.
	Mischief func(w http.ResponseWriter, q Question, good []byte) bool

	spec int // the minor number of the version: 6 to 10

	mu       sync.Mutex // guards the fields below
	blocks   []*starknet.Block
	l1       uint64 // latest block accepted on layer 1
	asked    []Question
	underWay int
	most     int
}

// Question is one request.
type Question struct {
	Method string
	Number uint64 // requested block
	Tag    string // instead of the number
	Nth    int    // position among all requests, from 1
	ID     json.RawMessage
}

// New starts a node that serves blocks by version 0.spec of the specification until the test
// ends.
func New(t testing.TB, spec int, blocks []*starknet.Block) *Node {
	t.Helper()
	n := &Node{spec: spec, blocks: blocks, ChainID: starknet.FeltOf(77)}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

// ServeHTTP serves one request.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := Question{Method: request.Method, ID: request.ID}
	var id struct {
		Number uint64 `json:"block_number"`
	}
	if len(request.Params) == 1 && json.Unmarshal(request.Params[0], &q.Tag) != nil {
		if err := json.Unmarshal(request.Params[0], &id); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.Number = id.Number
	}
	n.mu.Lock()
	n.underWay++
	n.most = max(n.most, n.underWay)
	n.asked = append(n.asked, q)
	q.Nth = len(n.asked)
	good, mischief := n.answer(q), n.Mischief
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.underWay--
		n.mu.Unlock()
	}()
	if mischief == nil || !mischief(w, q, good) {
		w.Write(good)
	}
}

// answer returns the correct response to a request.
func (n *Node) answer(q Question) []byte {
	fail := func(code int, message string) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","error":{"code":%d,"message":%q,"data":null},"id":%s}`, code, message, q.ID)
	}
	var result any
	switch q.Method {
	case "starknet_chainId":
		result = n.ChainID.String()
	case "starknet_blockHashAndNumber":
		if len(n.blocks) == 0 {
			return fail(32, "There are no blocks")
		}
		last := n.blocks[len(n.blocks)-1]
		result = map[string]any{"block_hash": last.Hash.String(), "block_number": last.Number}
	case "starknet_getBlockWithReceipts", "starknet_getBlockWithTxHashes":
		if q.Tag == "l1_accepted" {
			if n.spec < 9 {
				return fail(-32602, "Invalid Params")
			}
			q.Number = n.l1
		}
		at := slices.IndexFunc(n.blocks, func(b *starknet.Block) bool { return b.Number == q.Number })
		if at < 0 {
			return fail(24, "Block not found")
		}
		result = EncodeBlock(n.blocks[at], n.spec, q.Method == "starknet_getBlockWithTxHashes")
	default:
		return fail(-32601, "Method not found")
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fail(-32603, err.Error())
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","result":%s,"id":%s}`, text, q.ID)
}

// Answer returns the correct response to a request.
func (n *Node) Answer(q Question) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answer(q)
}

// Set replaces the chain.
func (n *Node) Set(blocks []*starknet.Block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.blocks = blocks
}

// AcceptOnL1 makes the node say that a block and those below it are accepted on layer 1.
func (n *Node) AcceptOnL1(number uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.l1 = number
}

// Questions returns the number of requests for a method.
func (n *Node) Questions(method string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.asked {
		if q.Method == method {
			count++
		}
	}
	return count
}

// Most returns the maximum number of concurrent requests since it was last called.
func (n *Node) Most() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	most := n.most
	n.most = n.underWay
	return most
}

// EncodeBlock returns a block in the form of a version of the specification, with either all
// transactions or only their hashes.
func EncodeBlock(b *starknet.Block, spec int, hashesOnly bool) map[string]any {
	price := func(p starknet.GasPrice) map[string]string {
		return map[string]string{"price_in_wei": p.Wei.String(), "price_in_fri": p.Fri.String()}
	}
	out := map[string]any{
		"status":     map[starknet.Status]string{starknet.AcceptedOnL2: "ACCEPTED_ON_L2", starknet.AcceptedOnL1: "ACCEPTED_ON_L1"}[b.Status],
		"block_hash": b.Hash.String(), "parent_hash": b.Parent.String(), "block_number": b.Number, "new_root": b.NewRoot.String(),
		"timestamp": b.Timestamp, "sequencer_address": b.Sequencer.String(), "starknet_version": b.Version, "l1_gas_price": price(b.L1GasPrice),
	}
	if spec >= 7 {
		out["l1_data_gas_price"] = price(b.L1DataGasPrice)
		out["l1_da_mode"] = map[starknet.L1DataMode]string{starknet.Calldata: "CALLDATA", starknet.Blob: "BLOB"}[b.L1DataMode]
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

func encodeTransaction(t *starknet.Transaction, spec int) map[string]any {
	transaction := map[string]any{
		"type": t.Kind.String(), "version": starknet.FeltOf(t.Version).String(), "signature": texts(t.Signature), "calldata": []string{"0x1"},
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
	if t.Kind == starknet.L1Handler {
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

func texts(felts []starknet.Felt) []string {
	out := []string{}
	for _, f := range felts {
		out = append(out, f.String())
	}
	return out
}
