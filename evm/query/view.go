// Package query answers questions about an EVM network. Every question takes
// one [View] and asks it alone, so that no answer mixes two blocks.
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

// The kinds of what cannot be answered. The api translates them into codes.
var (
	ErrUnknownBlock = errors.New("header not found")
	ErrUnknownHash  = errors.New("header for hash not found")
	ErrNotCanonical = errors.New("hash is not currently canonical")
	ErrNoFinalized  = errors.New("finalized block not found")
	ErrNoSafe       = errors.New("safe block not found")
)

// Chain is one network that can be asked. It may be used from many goroutines at once.
type Chain struct {
	archive  *archive.Archive
	tip      *tip.Tip // nil where every block is settled as it comes
	executor *execute.Executor
	now      atomic.Pointer[headView]
	pending  pending
	tips     *tipsCache
}

// headView is the view of a tip's standing, for as long as that is the latest.
type headView struct {
	standing tip.Standing
	view     *View
}

// NewChain makes the chain that an archive holds, with the unsettled blocks of a
// tip above it. Without a tip, nil, the last settled block is the head.
func NewChain(a *archive.Archive, t *tip.Tip, e *execute.Executor) *Chain {
	return &Chain{
		archive: a, tip: t, executor: e,
		pending: pending{making: semaphore.NewWeighted(1)},
		tips:    lru.NewCache[common.Hash, []gasTip](cachedTips),
	}
}

// Executor runs calls on the chain's state.
func (c *Chain) Executor() *execute.Executor { return c.executor }

// View returns the chain as it is now. An empty chain has no view.
func (c *Chain) View() (*View, error) {
	if c.tip == nil {
		head, ok := c.archive.Settled()
		if !ok {
			return nil, ErrUnknownBlock
		}
		return &View{history: &c.archive.History, chain: c, head: head}, nil
	}
	standing := c.tip.Standing()
	if now := c.now.Load(); now != nil && now.standing == standing {
		return now.view, nil
	}
	view := c.branchView(standing.Head)
	view.safe, view.finalized = standing.Safe, standing.Finalized
	c.now.Store(&headView{standing, view})
	return view, nil
}

// branchView is the chain up to the end of a branch.
func (c *Chain) branchView(branch *tip.Branch) *View {
	settled := branch.Settled().Number
	return &View{
		history: c.archive.Over(branch.Over(c.archive.Rows()), settled),
		chain:   c, head: branch.Ref(), branch: branch,
	}
}

// View is a chain and its state as of one head. It holds no resources, and may be
// used from many goroutines at once.
type View struct {
	chain           *Chain
	history         *archive.History // up to the head, and perhaps what has been settled since
	branch          *tip.Branch      // that ends with the head; nil without a tip
	head            chain.Ref
	safe, finalized chain.Ref // zero while not known
	pending         bool      // the head is a block that is only imagined
	dropped         bool      // the head is on a branch that the chain has left
}

// Head is the last block of the view.
func (v *View) Head() chain.Ref { return v.head }

// IsPending says whether a block of the view is the pending one: a block that is
// only imagined, whose number and hash nobody is to be told.
func (v *View) IsPending(number uint64) bool { return v.pending && number == v.head.Number }

// IsDropped says whether a block of the view is none of the chain: a reorganization has
// dropped it or a block below it. What may yet come next on the chain is not dropped.
func (v *View) IsDropped(number uint64) bool { return v.dropped && number == v.head.Number }

// Executor runs calls on the chain's state.
func (v *View) Executor() *execute.Executor { return v.chain.executor }

// Header returns the header of a block of the view, or ErrUnknownBlock. The
// caller must not change it.
func (v *View) Header(ctx context.Context, number uint64) (*archive.Header, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.history.Header(ctx, number)
}

// Body returns the body of a block of the view, or ErrUnknownBlock. It refers
// to buffer, which the stored row is appended to.
func (v *View) Body(ctx context.Context, number uint64, buffer []byte) (*archive.Body, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.history.Body(ctx, number, buffer)
}

// Receipts returns the receipts of a block of the view, or ErrUnknownBlock.
// They refer to buffer, which the stored row is appended to.
func (v *View) Receipts(ctx context.Context, number uint64, buffer []byte) (*archive.Receipts, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.history.Receipts(ctx, number, buffer)
}

// HoldBody returns the body of a block of the view, or ErrUnknownBlock. The body is
// valid until held is closed.
func (v *View) HoldBody(ctx context.Context, number uint64) (body archive.Body, held io.Closer, err error) {
	if number > v.head.Number {
		return body, nil, ErrUnknownBlock
	}
	return v.history.HoldBody(ctx, number)
}

// HoldReceipts returns the receipts of a block of the view, or ErrUnknownBlock. They
// are valid until held is closed.
func (v *View) HoldReceipts(ctx context.Context, number uint64) (receipts archive.Receipts, held io.Closer, err error) {
	if number > v.head.Number {
		return receipts, nil, ErrUnknownBlock
	}
	return v.history.HoldReceipts(ctx, number)
}

// State is the state after a block of the view, which must not lie above its head.
func (v *View) State(number uint64) evm.State { return v.history.StateAt(number) }

// Postings is where a term of a log occurs in the blocks of the view from one to another.
func (v *View) Postings(ctx context.Context, term postings.Term, from, to uint64) postings.Postings {
	return v.history.Postings(ctx, term, from, min(to, v.head.Number))
}

// FindBlock returns the number of the block with a hash, or ErrUnknownHash.
func (v *View) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	number, err := v.history.FindBlock(ctx, hash)
	if errors.Is(err, archive.ErrNotFound) || err == nil && number > v.head.Number {
		return 0, ErrUnknownHash
	}
	return number, err
}

// Tag is a block by its standing rather than its number.
type Tag uint8

// The tags of a block parameter.
const (
	NoTag Tag = iota
	Latest
	Earliest
	Pending
	Safe
	Finalized
)

// BlockID is a block parameter: a tag, else a hash, else a number.
type BlockID struct {
	Tag              Tag
	Number           uint64
	Hash             *common.Hash
	RequireCanonical bool // with Hash, see EIP-1898
}

// Resolve returns the number of the block that id names, and the view that it
// is in: another one than v for a block of another branch, named by its hash.
func (v *View) Resolve(ctx context.Context, id BlockID) (*View, uint64, error) {
	switch id.Tag {
	case Latest:
		if v.pending {
			return v, v.head.Number - 1, nil
		}
		return v, v.head.Number, nil
	case Pending:
		v, err := v.withPending(ctx)
		if err != nil {
			return nil, 0, err
		}
		return v, v.head.Number, nil
	case Earliest:
		return v, 0, nil
	case Safe:
		return v.standing(v.safe, ErrNoSafe)
	case Finalized:
		return v.standing(v.finalized, ErrNoFinalized)
	}
	if id.Hash != nil {
		return v.resolveHash(ctx, id)
	}
	if id.Number > v.head.Number {
		return nil, 0, fmt.Errorf("%w: block %#x lies above the head %#x", ErrUnknownBlock, id.Number, v.head.Number)
	}
	return v, id.Number, nil
}

func (v *View) standing(ref chain.Ref, missing error) (*View, uint64, error) {
	if ref == (chain.Ref{}) || ref.Number > v.head.Number {
		return nil, 0, missing
	}
	return v, ref.Number, nil
}

func (v *View) resolveHash(ctx context.Context, id BlockID) (*View, uint64, error) {
	number, err := v.FindBlock(ctx, *id.Hash)
	if !errors.Is(err, ErrUnknownHash) || v.chain.tip == nil {
		return v, number, err
	}
	branch, otherErr := v.chain.tip.Branch(*id.Hash)
	if otherErr != nil {
		return nil, 0, err
	}
	if id.RequireCanonical {
		return nil, 0, ErrNotCanonical
	}
	other := v.chain.branchView(branch)
	at, holds := branch.At(v.head.Number) // it does not hold what was settled since v was taken
	other.dropped = other.head.Number < v.head.Number || holds && at != v.head
	return other, other.head.Number, nil
}
