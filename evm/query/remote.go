package query

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/proven"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/limit"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// remote is what a chain reads from other nodes: blocks and state that its archive lacks, and
// the head while executed blocks are far behind it.
type remote struct {
	*proven.Remote
	tip *tip.Tip // of blocks that are not executed

	mu      sync.Mutex // held from reading the heads of both tips to the decision
	hasHead bool       // guarded by mu: the head is that of tip
}

// CatchUpBlocks is how far the executed head may be behind the one of the nodes before clients
// see the latter.
const CatchUpBlocks = 32

// SetRemote has the chain read what its archive does not store from other nodes. unexecuted is
// the tip that follows the nodes' head. SetRemote must be called before the chain is used.
func (c *Chain) SetRemote(r *proven.Remote, unexecuted *tip.Tip) {
	c.remote, c.history = &remote{Remote: r, tip: unexecuted}, c.archive.CompletedBy(r)
}

// headTip returns the tip that has the head, nil if the last settled block is the head, and
// whether it is the tip of blocks that are not executed.
func (c *Chain) headTip() (t *tip.Tip, unexecuted bool) {
	if c.remote != nil && (c.tip == nil || c.remote.takesHead(c.tip)) {
		return c.remote.tip, true
	}
	return c.tip, false
}

// takesHead reports whether the tip of blocks that are not executed has the head, and not the
// tip of executed ones:
//
//	executed    not executed
//	   100           900         the head is 900
//	   890           900         still 900, so that it does not go back
//	   901           901         the executed 901
//	   902           930         the executed 902, until it is CatchUpBlocks behind
func (r *remote) takesHead(executed *tip.Tip) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, theirs := executed.Forkchoice().Head.Ref().Number, r.tip.Forkchoice().Head.Ref().Number
	switch {
	case ours >= theirs:
		r.hasHead = false
	case theirs > ours+CatchUpBlocks:
		r.hasHead = true
	}
	return r.hasHead
}

// HeadIsRemote reports whether the head is one that nodes name, of blocks that are not executed
// here.
func (c *Chain) HeadIsRemote() bool {
	_, unexecuted := c.headTip()
	return unexecuted
}

// findBranch returns the branch that ends with a block, nil if no tip has it.
func (c *Chain) findBranch(hash common.Hash) (branch *tip.Branch, unexecuted bool) {
	if c.tip != nil {
		if branch, err := c.tip.Branch(hash); err == nil {
			return branch, false
		}
	}
	if c.remote != nil {
		if branch, err := c.remote.tip.Branch(hash); err == nil {
			return branch, true
		}
	}
	return nil, false
}

// weaken records that an answer rests on a block, if it is not executed here: it is read from
// nodes, or it is older than the state with which the history began.
func (v *View) weaken(ctx context.Context, number uint64) {
	if v.chain.remote != nil && !v.history.Stores(number) || !v.history.Executed(number) {
		jsonrpc.Weaken(ctx, jsonrpc.Proven)
	}
}

// weakenAbsent records that an answer rests on the absence of something, of which nodes were
// asked.
func (v *View) weakenAbsent(ctx context.Context) {
	if v.chain.remote != nil {
		jsonrpc.Weaken(ctx, jsonrpc.Unverified)
	}
}

// hasRemoteState reports whether the state after a block, or its trie nodes, are read from other nodes.
func (v *View) hasRemoteState(number uint64, kind archive.Kind) bool {
	switch {
	case v.chain.remote == nil:
		return false
	case v.branch != nil && number > v.branch.Settled().Number:
		return v.remote
	}
	return !v.chain.archive.StoresState(number, kind)
}

// remoteState is the state after a block, read from other nodes.
type remoteState struct {
	*proven.State
	view   *View
	number uint64
	kind   archive.Kind // why it is read from other nodes
}

var _ evm.Named = remoteState{}

// remoteState returns the state after a block, read from other nodes.
func (v *View) remoteState(number uint64, kind archive.Kind) remoteState {
	state := v.chain.remote.StateAt(func(ctx context.Context) (*types.Header, error) {
		header, err := v.Header(ctx, number)
		if err != nil {
			return nil, err
		}
		return header.Header, nil
	})
	return remoteState{state, v, number, kind}
}

// ErrHeadState means that no node has the state of the head. Some nodes prove only the state of their
// newest block, which may have become another one since the view was made.
var ErrHeadState = errors.New("the nodes do not have the state of the newest block any more: try again")

// explain returns an error with where the own state begins. It also records how the answer is
// verified.
func (s remoteState) explain(ctx context.Context, err error) error {
	jsonrpc.Weaken(ctx, jsonrpc.Proven)
	if s.number == s.view.head.Number && !s.view.dropped && upstream.LacksHistory(err) {
		return fmt.Errorf("%w: %w", ErrHeadState, err)
	}
	return s.view.chain.archive.Explain(s.number, s.kind, err)
}

// Account implements [evm.State].
func (s remoteState) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	account, err := s.State.Account(ctx, address)
	return account, s.explain(ctx, err)
}

// Slot implements [evm.State].
func (s remoteState) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	value, err := s.State.Slot(ctx, address, slot)
	return value, s.explain(ctx, err)
}

// Code implements [evm.State].
func (s remoteState) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	code, err := s.State.Code(ctx, hash)
	return code, s.explain(ctx, err)
}

// Node implements [evm.State].
func (s remoteState) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	node, err := s.State.Node(ctx, owner, path, hash)
	return node, s.explain(ctx, err)
}

// gather calls read, which reads what a request needs before it runs something. If that comes from nodes, the
// request yields its slot meanwhile, so it must hold nothing that others wait for: no place of the executor, no
// lock. The context of read ends when the request has a slot again, and with it what counts as memory of
// requests that wait.
func gather[T any](ctx context.Context, fromNodes bool, read func(context.Context) (T, error)) (T, error) {
	if !fromNodes {
		return read(ctx)
	}
	ctx, resumed := context.WithCancel(ctx)
	defer resumed()
	var value T
	err := limit.Yield(ctx, func() (err error) {
		value, err = read(ctx)
		return err
	})
	return value, err
}

// prefetchCalls has a remote state fetch what calls are going to read. It does nothing for a
// state that is stored. What cannot be fetched is fetched when it is read.
func prefetchCalls(ctx context.Context, state evm.State, messages ...*execute.Message) {
	remote, ok := state.(remoteState)
	if !ok || len(messages) == 0 {
		return
	}
	calls := make([]proven.Call, len(messages))
	for i, m := range messages {
		calls[i] = proven.Call{
			From: m.From, To: m.To, Gas: m.Gas, Value: m.Value, Data: m.Data, AccessList: m.AccessList, Authorizations: m.Authorizations,
		}
	}
	remote.PrefetchCalls(ctx, calls)
}

// prefetchProof has a remote state fetch the nodes of a proof. The request yields its slot meanwhile, see
// gather.
func prefetchProof(ctx context.Context, state evm.State, address common.Address, slots []common.Hash) error {
	remote, ok := state.(remoteState)
	if !ok {
		return nil
	}
	return limit.Yield(ctx, func() error {
		return remote.explain(ctx, remote.Prefetch(ctx, []proven.Want{{Address: address, Slots: slots}}))
	})
}

// prefetchBlock has a remote state fetch what the block after it reads. The request calls take once it has its
// slot again, see [proven.State.PrefetchBlock].
func prefetchBlock(ctx context.Context, state evm.State, block execute.Block) (take func() bool) {
	remote, ok := state.(remoteState)
	if !ok {
		return func() bool { return true }
	}
	whole, err := block.Whole()
	if err != nil {
		return func() bool { return true } // the error recurs when the block runs
	}
	return remote.PrefetchBlock(ctx, whole)
}

// takePrefetched calls take, which prefetchBlock returned. While a witness is invalid, the request yields its slot
// again, and fetches what the block reads from other nodes.
func takePrefetched(ctx context.Context, take func() bool, state evm.State, block execute.Block) (err error) {
	for err == nil && !take() {
		take, err = gather(ctx, true, func(ctx context.Context) (func() bool, error) {
			return prefetchBlock(ctx, state, block), nil
		})
	}
	return err
}
