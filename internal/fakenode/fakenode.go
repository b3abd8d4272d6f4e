// Package fakenode provides an Ethereum JSON-RPC node for tests. It serves given blocks over HTTP
// and WebSocket, using go-ethereum's RPC server.
package fakenode

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
)

// Options select the features of a node.
type Options struct {
	ChainID       uint64
	Raw           bool // debug_getRawBlock
	Subscriptions bool
	Pool          bool // txpool_content
	// Receipts, if not nil, returns the receipts of a block, for eth_getBlockReceipts and debug_getRawReceipts.
	Receipts func(block common.Hash) types.Receipts
	// Between, if not nil, wraps the node's HTTP handler.
	Between func(http.Handler) http.Handler
}

// Node is a running node. It is safe for concurrent use.
type Node struct {
	options Options
	rpc     *rpc.Server
	http    *httptest.Server

	mu              sync.Mutex
	chain           []*types.Block // guarded by mu; by number, the genesis first
	safe, finalized uint64         // guarded by mu; 0 for none
	known           map[common.Hash]*types.Block
	heads           subscribers          // guarded by mu
	pools           subscribers          // guarded by mu
	waiting         []*types.Transaction // guarded by mu
}

// subscribers are the subscribers to one kind of event.
type subscribers map[*subscriber]struct{}

type subscriber struct{ queue chan any }

// notify queues an event for a subscriber, unless its queue is full.
func (s *subscriber) notify(what any) {
	select {
	case s.queue <- what:
	default:
	}
}

// New starts a node with a genesis block. The node must be closed.
func New(options Options, genesis *types.Block) (*Node, error) {
	n := &Node{options: options, rpc: rpc.NewServer(), known: make(map[common.Hash]*types.Block), heads: make(subscribers), pools: make(subscribers)}
	n.Set([]*types.Block{genesis}, 0, 0)
	var eth any = &ethAPI{n}
	if options.Subscriptions {
		eth = &subscribableAPI{ethAPI{n}}
	}
	if err := n.rpc.RegisterName("eth", eth); err != nil {
		return nil, err
	}
	if options.Raw {
		if err := n.rpc.RegisterName("debug", &debugAPI{n}); err != nil {
			return nil, err
		}
	}
	var overHTTP http.Handler = n.rpc
	if options.Pool {
		if err := n.rpc.RegisterName("txpool", &poolAPI{n}); err != nil {
			return nil, err
		}
	}
	if options.Between != nil {
		overHTTP = options.Between(overHTTP)
	}
	socket := n.rpc.WebsocketHandler([]string{"*"})
	n.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			socket.ServeHTTP(w, r)
			return
		}
		overHTTP.ServeHTTP(w, r)
	}))
	return n, nil
}

// URL returns the node's HTTP URL.
func (n *Node) URL() string { return n.http.URL }

// SocketURL returns the node's WebSocket URL.
func (n *Node) SocketURL() string { return "ws" + strings.TrimPrefix(n.http.URL, "http") }

// Close stops the node.
func (n *Node) Close() {
	n.rpc.Stop()
	n.http.CloseClientConnections()
	n.http.Close()
}

// Disconnect closes all connections. Clients may reconnect.
func (n *Node) Disconnect() { n.http.CloseClientConnections() }

// Set replaces the chain, given from the genesis on, and announces its head. safe and finalized are
// block numbers, 0 for none. Blocks of earlier chains remain available by hash.
func (n *Node) Set(chain []*types.Block, safe, finalized uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chain, n.safe, n.finalized = chain, safe, finalized
	for _, block := range chain {
		n.known[block.Hash()] = block
	}
	head := n.object(chain[len(chain)-1], false)
	for s := range n.heads {
		s.notify(head)
	}
}

// at returns the block with a number or tag, or nil.
func (n *Node) at(number rpc.BlockNumber) *types.Block {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch number {
	case rpc.LatestBlockNumber, rpc.PendingBlockNumber:
		return n.chain[len(n.chain)-1]
	case rpc.SafeBlockNumber, rpc.FinalizedBlockNumber:
		index := n.safe
		if number == rpc.FinalizedBlockNumber {
			index = n.finalized
		}
		if index == 0 {
			return nil
		}
		return n.chain[index]
	}
	if number < 0 || int(number) >= len(n.chain) {
		return nil
	}
	return n.chain[number]
}

func (n *Node) withHash(hash common.Hash) *types.Block {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[hash]
}

// object returns the JSON object of a block, nil for nil.
func (n *Node) object(block *types.Block, full bool) map[string]any {
	if block == nil {
		return nil
	}
	object := make(map[string]any)
	if text, err := json.Marshal(block.Header()); err != nil || json.Unmarshal(text, &object) != nil {
		return nil
	}
	object["size"] = hexutil.Uint64(block.Size())
	uncles := []common.Hash{}
	for _, uncle := range block.Uncles() {
		uncles = append(uncles, uncle.Hash())
	}
	object["uncles"] = uncles
	if block.Withdrawals() != nil {
		object["withdrawals"] = block.Withdrawals()
	}
	if full {
		object["transactions"] = append(types.Transactions{}, block.Transactions()...) // not null if empty
		return object
	}
	hashes := []common.Hash{}
	for _, tx := range block.Transactions() {
		hashes = append(hashes, tx.Hash())
	}
	object["transactions"] = hashes
	return object
}

// ethAPI implements the namespace eth.
type ethAPI struct{ n *Node }

func (a *ethAPI) ChainId() hexutil.Uint64 { return hexutil.Uint64(a.n.options.ChainID) }

func (a *ethAPI) GetBlockByNumber(number rpc.BlockNumber, full bool) map[string]any {
	return a.n.object(a.n.at(number), full)
}

func (a *ethAPI) GetBlockByHash(hash common.Hash, full bool) map[string]any {
	return a.n.object(a.n.withHash(hash), full)
}

func (a *ethAPI) GetUncleByBlockHashAndIndex(hash common.Hash, index hexutil.Uint) *types.Header {
	block := a.n.withHash(hash)
	if block == nil || int(index) >= len(block.Uncles()) {
		return nil
	}
	return block.Uncles()[index]
}

func (a *ethAPI) GetBlockReceipts(id rpc.BlockNumberOrHash) (types.Receipts, error) {
	hash, ok := id.Hash()
	if !ok || a.n.options.Receipts == nil {
		return nil, errNoReceipts
	}
	return a.n.options.Receipts(hash), nil
}

var errNoReceipts = errors.New("receipts are not available")

// subscribableAPI is ethAPI with subscriptions.
type subscribableAPI struct{ ethAPI }

// NewHeads serves a subscription until the client or the connection ends it.
func (a *subscribableAPI) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	return a.n.serve(ctx, a.n.heads)
}

// serve creates a subscription and adds it to a set.
func (n *Node) serve(ctx context.Context, to subscribers) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	subscription := notifier.CreateSubscription()
	s := &subscriber{queue: make(chan any, 64)}
	n.mu.Lock()
	to[s] = struct{}{}
	n.mu.Unlock()
	go func() {
		defer func() {
			n.mu.Lock()
			delete(to, s)
			n.mu.Unlock()
		}()
		for {
			select {
			case what := <-s.queue:
				if notifier.Notify(subscription.ID, what) != nil {
					return
				}
			case <-subscription.Err():
				return
			}
		}
	}()
	return subscription, nil
}

// debugAPI implements the namespace debug.
type debugAPI struct{ n *Node }

func (a *debugAPI) GetRawBlock(id rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	var block *types.Block
	if hash, ok := id.Hash(); ok {
		block = a.n.withHash(hash)
	} else if number, ok := id.Number(); ok {
		block = a.n.at(number)
	}
	if block == nil {
		return nil, errors.New("block not found")
	}
	return rlp.EncodeToBytes(block)
}

func (a *debugAPI) GetRawReceipts(id rpc.BlockNumberOrHash) ([]hexutil.Bytes, error) {
	hash, ok := id.Hash()
	if !ok || a.n.options.Receipts == nil {
		return nil, errNoReceipts
	}
	raws := []hexutil.Bytes{}
	for _, receipt := range a.n.options.Receipts(hash) {
		raw, err := receipt.MarshalBinary()
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}
