// Package forwardtest provides nodes of a synthetic chain for tests. What a node answers
// depends on the chain alone, so that answers can be told right from wrong.
package forwardtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Chain says which blocks there are: those up to Head, of which the ones from Fork on belong
// to a branch. The same number and branch are the same block on every node.
type Chain struct {
	Head, Fork uint64
	Branch     string
	Final      uint64
	LogsPer    int  // logs of a block
	Quiet      bool // the blocks of the branch have no logs
}

// isOfBranch reports whether a block is one of the branch.
func (c *Chain) isOfBranch(number uint64) bool { return c.Branch != "" && number >= c.Fork }

// Hash returns the hash of a block.
func (c *Chain) Hash(number uint64) common.Hash {
	branch := ""
	if c.isOfBranch(number) {
		branch = c.Branch
	}
	return crypto.Keccak256Hash([]byte(branch + strconv.FormatUint(number, 10)))
}

// Emitter is the contract of all logs.
var Emitter = common.HexToAddress("0xe1")

// Node is a running node. Its fields may be changed by Set.
type Node struct {
	*httptest.Server

	mu sync.Mutex
	// Chain is the chain of the node.
	Chain Chain
	// ChainID is the ID that it names.
	ChainID uint64
	// Range is the greatest number of blocks of eth_getLogs; 0: any.
	Range uint64
	// Results is the greatest number of logs; 0: any.
	Results int
	// Indented says that answers have white space between their parts, as those of some nodes do.
	Indented bool
	// Answer, if not nil, answers a call before the node does, if it returns true.
	Answer func(method string, params []json.RawMessage) (result any, fault *Error, ok bool)
	// Between, if not nil, may answer a request in the node's place.
	Between func(w http.ResponseWriter, r *http.Request) bool
	counts  map[string]int
}

// New starts a node of the chain 7.
func New(chain Chain) *Node {
	n := &Node{Chain: chain, ChainID: 7, counts: make(map[string]int)}
	n.Server = httptest.NewServer(n)
	return n
}

// Stop closes all connections and the node.
func (n *Node) Stop() {
	n.CloseClientConnections()
	n.Close()
}

// Set changes the node.
func (n *Node) Set(change func(*Node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// Count returns how often a method was called.
func (n *Node) Count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[method]
}

// Total returns how many calls were made.
func (n *Node) Total() (sum int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, count := range n.counts {
		sum += count
	}
	return sum
}

type request struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// ServeHTTP implements [http.Handler].
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	between, encoder := n.Between, json.NewEncoder(w)
	if n.Indented {
		encoder.SetIndent("", "  ")
	}
	n.mu.Unlock()
	if between != nil && between(w, r) {
		return
	}
	var raw json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&raw)
	var batch []request
	if json.Unmarshal(raw, &batch) == nil {
		answers := make([]any, len(batch))
		for i := range batch {
			answers[i] = n.respond(&batch[i])
		}
		_ = encoder.Encode(answers)
		return
	}
	var one request
	_ = json.Unmarshal(raw, &one)
	_ = encoder.Encode(n.respond(&one))
}

func (n *Node) respond(r *request) any {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[r.Method]++
	var result any
	var fault *Error
	answered := false
	if n.Answer != nil {
		result, fault, answered = n.Answer(r.Method, r.Params)
	}
	if !answered {
		result, fault = n.answer(r.Method, r.Params)
	}
	if fault != nil {
		return map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": fault}
	}
	return map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result}
}

// answer is the answer of an honest node. mu is held.
func (n *Node) answer(method string, params []json.RawMessage) (any, *Error) {
	c := &n.Chain
	text := func(i int) string {
		var s string
		if i < len(params) {
			_ = json.Unmarshal(params[i], &s)
		}
		return s
	}
	switch method {
	case "eth_chainId":
		return hex(n.ChainID), nil
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		number, ok := n.find(params[0])
		if !ok {
			return nil, nil
		}
		return c.block(number), nil
	case "eth_getBlockTransactionCountByHash", "eth_getUncleCountByBlockHash":
		if _, ok := n.find(params[0]); !ok {
			return nil, nil
		}
		return map[string]string{"eth_getBlockTransactionCountByHash": "0x1", "eth_getUncleCountByBlockHash": "0x0"}[method], nil
	case "eth_getBlockReceipts":
		number, ok := n.find(params[0])
		if !ok {
			return nil, nil
		}
		return []any{c.receipt(number)}, nil
	case "eth_getTransactionReceipt", "eth_getTransactionByHash":
		for number := uint64(0); number <= c.Head; number++ {
			if c.Transaction(number).Hex() == text(0) {
				return c.receipt(number), nil
			}
		}
		return nil, nil
	case "eth_getBalance", "eth_call":
		number, ok := n.find(params[min(1, len(params)-1)])
		if !ok {
			return nil, &Error{Code: -32000, Message: "header not found"}
		}
		return hex(number*1000 + uint64(len(c.Branch))), nil
	case "eth_getLogs":
		return n.logs(params[0])
	case "eth_gasPrice":
		return hex(c.Head), nil
	case "eth_sendRawTransaction":
		return crypto.Keccak256Hash([]byte(text(0))), nil
	}
	return nil, &Error{Code: -32601, Message: "the method " + method + " does not exist/is not available"}
}

// find returns the number of the block that a parameter names.
func (n *Node) find(param json.RawMessage) (uint64, bool) {
	c := &n.Chain
	var object struct{ BlockHash, BlockNumber string }
	var text string
	if json.Unmarshal(param, &text) != nil {
		_ = json.Unmarshal(param, &object)
		text = object.BlockHash + object.BlockNumber
	}
	switch {
	case text == "latest" || text == "pending":
		return c.Head, true
	case text == "safe" || text == "finalized":
		return c.Final, c.Final > 0
	case len(text) == 66:
		for number := uint64(0); number <= c.Head; number++ {
			if c.Hash(number).Hex() == text {
				return number, true
			}
		}
		return 0, false
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return number, err == nil && number <= c.Head
}

// Transaction returns the hash of the only transaction of a block.
func (c *Chain) Transaction(number uint64) common.Hash {
	hash := c.Hash(number)
	return crypto.Keccak256Hash(hash[:])
}

func (c *Chain) block(number uint64) map[string]any {
	parent := common.Hash{}
	if number > 0 {
		parent = c.Hash(number - 1)
	}
	return map[string]any{
		"number": hex(number), "hash": c.Hash(number), "parentHash": parent, "timestamp": hex(number), "miner": Emitter,
		"transactions": []common.Hash{c.Transaction(number)}, "l1Fee": "0x1", "logsBloom": c.bloom(number),
	}
}

// bloom returns the bloom filter of a block's logs.
func (c *Chain) bloom(number uint64) (bloom types.Bloom) {
	for i := range c.logs(number) {
		topic := Topic(i)
		bloom.Add(Emitter[:])
		bloom.Add(topic[:])
	}
	return bloom
}

func (c *Chain) receipt(number uint64) map[string]any {
	return map[string]any{
		"blockNumber": hex(number), "blockHash": c.Hash(number), "transactionHash": c.Transaction(number), "transactionIndex": "0x0",
		"logs": c.logs(number), "status": "0x1",
	}
}

func (c *Chain) logs(number uint64) []any {
	all := []any{}
	if c.Quiet && c.isOfBranch(number) {
		return all
	}
	hash, transaction := c.Hash(number), c.Transaction(number)
	for i := range c.LogsPer {
		all = append(all, json.RawMessage(fmt.Sprintf(`{"blockNumber":"%#x","blockHash":"%s","transactionHash":"%s","transactionIndex":"0x0",`+
			`"logIndex":"%#x","address":"%s","topics":["%s"],"data":"0x","removed":false}`,
			number, hash.Hex(), transaction.Hex(), i, strings.ToLower(Emitter.Hex()), Topic(i).Hex())))
	}
	return all
}

// Topic returns the only topic of the log of a block with an index.
func Topic(index int) common.Hash { return common.BytesToHash([]byte{byte(index + 1)}) }

// logs answers eth_getLogs. mu is held.
func (n *Node) logs(param json.RawMessage) (any, *Error) {
	var f struct {
		FromBlock, ToBlock, BlockHash json.RawMessage
		Topics                        [][]common.Hash
	}
	_ = json.Unmarshal(param, &f)
	var from, to uint64
	var ok, also bool
	if f.BlockHash != nil {
		from, ok = n.find(f.BlockHash)
		to, also = from, true
	} else {
		from, ok = n.find(f.FromBlock)
		to, also = n.find(f.ToBlock)
	}
	if !ok || !also {
		return nil, &Error{Code: -32000, Message: "unknown block"}
	}
	if n.Range > 0 && to-from+1 > n.Range {
		return nil, &Error{Code: -32600, Message: fmt.Sprintf("You can make eth_getLogs requests with up to a %d block range.", n.Range)}
	}
	all := []any{}
	for number := from; number <= to; number++ {
		for i, log := range n.Chain.logs(number) {
			if len(f.Topics) == 0 || len(f.Topics[0]) == 0 || slices.Contains(f.Topics[0], Topic(i)) {
				all = append(all, log)
			}
		}
		if n.Results > 0 && len(all) > n.Results {
			return nil, &Error{Code: -32005, Message: fmt.Sprintf("query returned more than %d results", n.Results)}
		}
	}
	return all, nil
}

func hex(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }
