// Package query answers queries about an EVM network. Each query uses a single [View], so
// its result never mixes data of two heads.
//
// A [Chain] is what all queries share: the archive, the tip above it, the executor, the
// pending transactions, and the nodes that have what the archive lacks. [Chain.View] returns
// the chain as of now. A View resolves the block that a query names, and reads headers,
// state, logs, traces and proofs as of that block, whether they are stored, unsettled, or
// proven by nodes.
//
// The package decodes no parameters and encodes no answers: package api does.
package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/history/postings"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/sync/semaphore"
)

// Kinds of errors. Package api maps them to JSON-RPC codes.
var (
	ErrUnknownBlock = chain.ErrUnknownBlock
	ErrUnknownHash  = errors.New("header for hash not found")
	ErrNotCanonical = chain.ErrNotCanonical
	ErrNoFinalized  = chain.ErrNoFinalized
	ErrNoSafe       = chain.ErrNoSafe
)

// Chain answers queries about one network. It is safe for concurrent use.
type Chain struct {
	archive  *archive.Archive
	history  *archive.History // the archive's, and that of remote
	tip      *tip.Tip         // of executed blocks; nil if there are none, or blocks are settled as they arrive
	executor *execute.Executor
	remote   *remote // has what the archive lacks; may be nil
	now      atomic.Pointer[headView]
	pending  pending
	pooled   *View // whose dropped blocks the pool was last given; used by RunPool only
	tips     *tipsCache
	learned  *learned
	inputs   *inputCache
}

// headView caches the view of the latest forkchoice.
type headView struct {
	forkchoice tip.Forkchoice
	view       *View
}

// NewChain returns the chain in an archive, with the unsettled blocks of a tip above it. If
// t is nil, the last settled block is the head. A chain without an archive answers no query; it
// only serves to list the methods of package api.
func NewChain(a *archive.Archive, t *tip.Tip, e *execute.Executor) *Chain {
	c := &Chain{
		archive: a, tip: t, executor: e,
		pending: pending{making: semaphore.NewWeighted(1)},
		tips:    lru.NewCache[common.Hash, []gasTip](cachedTips),
		learned: newLearned(),
		inputs:  newInputCache(),
	}
	if a != nil {
		c.history = &a.History
	}
	return c
}

// Executor returns the executor for calls on the chain's state.
func (c *Chain) Executor() *execute.Executor { return c.executor }

// View returns a view of the current head. It fails if the chain is empty.
func (c *Chain) View() (*View, error) {
	t, isRemote := c.headTip()
	if t == nil {
		head, ok := c.archive.Settled()
		if !ok {
			return nil, ErrUnknownBlock
		}
		return &View{history: c.history, chain: c, head: head}, nil
	}
	forkchoice := t.Forkchoice()
	if now := c.now.Load(); now != nil && now.forkchoice == forkchoice {
		return now.view, nil
	}
	view := c.branchView(forkchoice.Head, isRemote)
	view.safe, view.finalized = forkchoice.Safe, forkchoice.Finalized
	c.now.Store(&headView{forkchoice, view})
	return view, nil
}

// branchView returns the view of the chain up to the end of a branch, of the tip of executed
// blocks or of the remote one.
func (c *Chain) branchView(branch *tip.Branch, isRemote bool) *View {
	over := c.history.Over
	if isRemote {
		over = c.history.OverContents
	}
	return &View{
		history: over(branch.Over(c.history.Rows()), branch.Settled().Number),
		chain:   c, head: branch.Ref(), branch: branch, remote: isRemote,
	}
}

// View is an immutable view of the chain and its state as of one head. It holds no
// resources, and is safe for concurrent use.
type View struct {
	chain           *Chain
	history         *archive.History // may include blocks settled after the view was created
	branch          *tip.Branch      // ends with the head; nil without a tip
	head            chain.Ref
	safe, finalized chain.Ref // zero while unknown
	pending         bool      // the head is a pending block
	dropped         bool      // the head is not on the canonical chain
	remote          bool      // the branch is of the remote tip
}

// Head returns the last block of the view.
func (v *View) Head() chain.Ref { return v.head }

// IsPending reports whether a block of the view is the pending block. Its number and hash
// must not be shown to clients.
func (v *View) IsPending(number uint64) bool { return v.pending && number == v.head.Number }

// IsDropped reports whether a block of the view has left the canonical chain because of a
// reorganization. A block that may still become canonical is not dropped.
func (v *View) IsDropped(number uint64) bool { return v.dropped && number == v.head.Number }

// Executor returns the executor for calls on the chain's state.
func (v *View) Executor() *execute.Executor { return v.chain.executor }

// Header returns the header of a block of the view, or ErrUnknownBlock. The caller must not
// modify it.
func (v *View) Header(ctx context.Context, number uint64) (*archive.Header, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.Header(ctx, number)
}

// Body returns the body of a block of the view, or ErrUnknownBlock. It appends the stored
// row to buffer, which the body aliases.
func (v *View) Body(ctx context.Context, number uint64, buffer []byte) (*archive.Body, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.Body(ctx, number, buffer)
}

// Receipts returns the receipts of a block of the view, or ErrUnknownBlock. It appends the
// stored row to buffer, which the receipts alias.
func (v *View) Receipts(ctx context.Context, number uint64, buffer []byte) (*archive.Receipts, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.Receipts(ctx, number, buffer)
}

// BlockAccessList returns the RLP of the access list of a block of the view, ErrUnknownBlock, or
// [archive.ErrNotFound] for a block before Amsterdam.
func (v *View) BlockAccessList(ctx context.Context, number uint64) ([]byte, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.AccessList(ctx, number)
}

// HoldBody returns the body of a block of the view, or ErrUnknownBlock. The body is
// valid until held is closed.
func (v *View) HoldBody(ctx context.Context, number uint64) (body archive.Body, held io.Closer, err error) {
	if number > v.head.Number {
		return body, nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.HoldBody(ctx, number)
}

// HoldReceipts returns the receipts of a block of the view, or ErrUnknownBlock. They
// are valid until held is closed.
func (v *View) HoldReceipts(ctx context.Context, number uint64) (receipts archive.Receipts, held io.Closer, err error) {
	if number > v.head.Number {
		return receipts, nil, ErrUnknownBlock
	}
	v.weaken(ctx, number)
	return v.history.HoldReceipts(ctx, number)
}

// Extent returns where the history of the view begins, with what is read from other nodes.
func (v *View) Extent() archive.Extent {
	if v.chain.remote != nil {
		return archive.Extent{}
	}
	return v.history.Extent()
}

// cachedTries is how many blocks, back from the head, share cached trie nodes. Questions about
// random older blocks hardly have nodes in common: proofs would take 8 % more processor time.
const cachedTries = 128

// State returns the state after a block of the view, which must not be above the head.
// Reading it returns a [*archive.Pruned] if the block is older than the first one with state, and reading
// its trie nodes if it is older than the first one with these.
func (v *View) State(number uint64) evm.State { return v.stateFor(number, archive.OfState) }

// stateWithTries is [View.State] for callers that read trie nodes. An archive may have older states without
// them.
func (v *View) stateWithTries(number uint64) evm.State { return v.stateFor(number, archive.OfTries) }

// stateFor returns the state after a block. kind is what the caller reads of it.
func (v *View) stateFor(number uint64, kind archive.Kind) evm.State {
	if v.hasRemoteState(number, kind) {
		return v.remoteState(number, kind)
	}
	state := v.history.StateAt(number)
	if number+cachedTries > v.head.Number {
		return state.CachingNodes()
	}
	return state
}

// Postings returns the occurrences of a log term in the blocks from to to of the view.
func (v *View) Postings(ctx context.Context, term postings.Term, from, to uint64) postings.Postings {
	return v.history.Postings(ctx, term, from, min(to, v.head.Number))
}

// FindBlock returns the number of the block with a hash, or ErrUnknownHash. If the block is
// about to be removed, the error is a [*archive.Pruned].
func (v *View) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	number, err := v.history.FindBlock(ctx, hash)
	if errors.Is(err, archive.ErrNotFound) || err == nil && number > v.head.Number {
		v.weakenAbsent(ctx)
		return 0, ErrUnknownHash
	}
	if err != nil {
		return 0, err
	}
	return number, v.history.CheckBlock(number)
}

// CheckBlock returns a [*archive.Pruned] if a block is older than the first one of the history,
// also while its rows are still there.
func (v *View) CheckBlock(number uint64) error { return v.history.CheckBlock(number) }

// Resolve returns the number of the block that id denotes, and a view that contains it. The
// view differs from v if id is the hash of a block on another branch, or the pending block.
func (v *View) Resolve(ctx context.Context, id chain.BlockID) (*View, uint64, error) {
	switch id.Tag {
	case chain.Latest:
		if v.pending {
			return v, v.head.Number - 1, nil
		}
		return v, v.head.Number, nil
	case chain.Pending:
		v, err := v.withPending(ctx)
		if err != nil {
			return nil, 0, err
		}
		return v, v.head.Number, nil
	case chain.Earliest:
		return v, v.Extent().Blocks, nil
	case chain.Safe:
		return v.forkchoice(v.safe, ErrNoSafe)
	case chain.Finalized:
		return v.forkchoice(v.finalized, ErrNoFinalized)
	}
	if id.Hash != nil {
		return v.resolveHash(ctx, id)
	}
	if id.Number > v.head.Number {
		return nil, 0, fmt.Errorf("%w: block %#x lies above the head %#x", ErrUnknownBlock, id.Number, v.head.Number)
	}
	return v, id.Number, v.history.CheckBlock(id.Number)
}

// CheckEarliest returns a [*archive.Pruned] if a range that begins with the earliest block that is stored ends before it. The
// block at its end may be the genesis, which is always stored.
func (v *View) CheckEarliest(end uint64) error { return v.history.CheckBlock(max(1, end)) }

func (v *View) forkchoice(ref chain.Ref, missing error) (*View, uint64, error) {
	if ref == (chain.Ref{}) || ref.Number > v.head.Number {
		return nil, 0, missing
	}
	return v, ref.Number, nil
}

func (v *View) resolveHash(ctx context.Context, id chain.BlockID) (*View, uint64, error) {
	number, err := v.FindBlock(ctx, *id.Hash)
	if !errors.Is(err, ErrUnknownHash) {
		return v, number, err
	}
	branch, isRemote := v.chain.findBranch(*id.Hash)
	if branch == nil {
		return nil, 0, err
	}
	if id.RequireCanonical {
		return nil, 0, ErrNotCanonical
	}
	other := v.chain.branchView(branch, isRemote)
	at, holds := branch.At(v.head.Number) // it does not hold what was settled since v was taken
	other.dropped = other.head.Number < v.head.Number || holds && at != v.head
	return other, other.head.Number, nil
}
