// Package query answers questions about an EVM network. Every question takes
// one [View] and asks it alone, so that no answer mixes two blocks.
package query

import (
	"context"
	"errors"
	"fmt"

	"ashlar/archive"
	"ashlar/archive/postings"
	"ashlar/chain"
	"ashlar/chain/evm"
	"ashlar/execute"

	"github.com/ethereum/go-ethereum/common"
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
	executor *execute.Executor
}

// NewChain makes the chain that an archive holds.
func NewChain(a *archive.Archive, e *execute.Executor) *Chain {
	return &Chain{archive: a, executor: e}
}

// Executor runs calls on the chain's state.
func (c *Chain) Executor() *execute.Executor { return c.executor }

// View returns the chain as it is now. An empty chain has no view.
func (c *Chain) View() (*View, error) {
	head, ok := c.archive.Settled()
	if !ok {
		return nil, ErrUnknownBlock
	}
	return &View{chain: c, head: head}, nil
}

// View is a chain and its state as of one head. It costs next to nothing to
// make, holds no resources, and may be used from many goroutines at once.
type View struct {
	chain *Chain
	head  chain.Ref
}

// Head is the last block of the view.
func (v *View) Head() chain.Ref { return v.head }

// Executor runs calls on the chain's state.
func (v *View) Executor() *execute.Executor { return v.chain.executor }

// Header returns the header of a block of the view, or ErrUnknownBlock. The
// caller must not change it.
func (v *View) Header(ctx context.Context, number uint64) (*archive.Header, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.chain.archive.Header(ctx, number)
}

// Body returns the body of a block of the view, or ErrUnknownBlock. It refers
// to buffer, which the stored row is appended to.
func (v *View) Body(ctx context.Context, number uint64, buffer []byte) (*archive.Body, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.chain.archive.Body(ctx, number, buffer)
}

// Receipts returns the receipts of a block of the view, or ErrUnknownBlock.
// They refer to buffer, which the stored row is appended to.
func (v *View) Receipts(ctx context.Context, number uint64, buffer []byte) (*archive.Receipts, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.chain.archive.Receipts(ctx, number, buffer)
}

// State is the state after a block of the view, which must not lie above its head.
func (v *View) State(number uint64) evm.State { return v.chain.archive.StateAt(number) }

// Postings is where a term of a log occurs in the blocks of the view from one to another.
func (v *View) Postings(ctx context.Context, term postings.Term, from, to uint64) postings.Postings {
	return v.chain.archive.Postings(ctx, term, from, min(to, v.head.Number))
}

// FindBlock returns the number of the block with a hash, or ErrUnknownHash.
func (v *View) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	number, err := v.chain.archive.FindBlock(ctx, hash)
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

// Resolve returns the number of the block of the view that id names.
func (v *View) Resolve(ctx context.Context, id BlockID) (uint64, error) {
	switch id.Tag {
	case Latest, Pending: // nothing is pending in a chain that is settled as it comes
		return v.head.Number, nil
	case Earliest:
		return 0, nil
	case Safe:
		return 0, ErrNoSafe
	case Finalized:
		return 0, ErrNoFinalized
	}
	if id.Hash != nil {
		return v.FindBlock(ctx, *id.Hash)
	}
	if id.Number > v.head.Number {
		return 0, fmt.Errorf("%w: block %#x lies above the head %#x", ErrUnknownBlock, id.Number, v.head.Number)
	}
	return id.Number, nil
}
