// Package query answers queries about a Starknet network: blocks, transactions and events,
// settled or in the tip. Each query uses a single [View], so its result never mixes data of
// two heads. Package api decodes the parameters and encodes the answers.
package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/starknet"
	"ashlar/starknet/archive"

	"github.com/ethereum/go-ethereum/common"
)

// Kinds of errors.
var (
	ErrUnknownBlock       = errors.New("no such block")
	ErrUnknownTransaction = errors.New("no such transaction")
)

// Chain answers queries about one network. It is safe for concurrent use.
type Chain struct {
	archive *archive.Archive
	tip     func() *tip.Tip

	l1 atomic.Uint64 // number of the latest block accepted on layer 1, plus one; 0: not known
}

// NewChain returns the chain in an archive, with the unsettled blocks of a tip above it. tip is
// called for each view, and may return nil as long as there are no blocks.
func NewChain(a *archive.Archive, tip func() *tip.Tip) *Chain { return &Chain{archive: a, tip: tip} }

// ID returns the chain's ID as text, such as SN_MAIN.
func (c *Chain) ID() string { return c.archive.ChainID() }

// SetL1Accepted records that the block with a number, and all below it, are accepted on layer
// 1. The block need not be here yet. An earlier, higher number stays, see [Chain.ForgetL1Above].
func (c *Chain) SetL1Accepted(number uint64) {
	for before := c.l1.Load(); number+1 > before; before = c.l1.Load() {
		if c.l1.CompareAndSwap(before, number+1) {
			return
		}
	}
}

// ForgetL1Above records that blocks above one have been reverted: those that take their place need not be accepted
// on layer 1.
func (c *Chain) ForgetL1Above(number uint64) {
	for before := c.l1.Load(); before > number+1; before = c.l1.Load() {
		if c.l1.CompareAndSwap(before, number+1) {
			return
		}
	}
}

// Fits returns an error if another block with the same number is here.
func (c *Chain) Fits(ctx context.Context, block chain.Ref) error {
	view := c.View()
	if view == nil || block.Number < view.Span().First || block.Number > view.Span().Last.Number {
		return nil
	}
	header, err := view.Header(ctx, block.Number)
	if err == nil && common.Hash(header.Hash) != block.Hash {
		err = fmt.Errorf("block %d has another hash: %#x, expected %s", block.Number, block.Hash, header.Hash)
	}
	return err
}

// View returns a view of the current head, nil if there are no blocks.
func (c *Chain) View() *View {
	span := c.archive.Span()
	if span == nil {
		return nil
	}
	above := c.tip()
	if above == nil {
		return &View{c.archive.Settled(span), c.l1.Load()}
	}
	branch := above.Forkchoice().Head
	whole := archive.Span{First: span.First, Last: branch.Ref()}
	return &View{c.archive.Over(branch.Over(c.archive.Rows()), whole, branch.Settled().Number), c.l1.Load()}
}

// View is a view of the chain as of one head. It is cheap to create, holds no resources, and is
// safe for concurrent use.
type View struct {
	blocks *archive.Reader
	l1     uint64 // as Chain.l1
}

// Span returns the first and last block.
func (v *View) Span() archive.Span { return v.blocks.Span() }

// L1Accepted returns the number of the latest block that is known to be accepted on layer 1,
// or false if it is not known of any.
func (v *View) L1Accepted() (number uint64, known bool) {
	span := v.blocks.Span()
	if v.l1 <= span.First {
		return 0, false
	}
	return min(v.l1-1, span.Last.Number), true
}

// Status returns the status of a block: the stored one, unless it was accepted on layer 1
// since.
func (v *View) Status(header *archive.Header) starknet.Status {
	if header.Number < v.l1 && header.Status == starknet.AcceptedOnL2 {
		return starknet.AcceptedOnL1
	}
	return header.Status
}

// Header returns the header of a block. It returns ErrUnknownBlock above the head, and an
// [*archive.BeforeFirst] below the first block. The caller must not modify the header.
func (v *View) Header(ctx context.Context, number uint64) (*archive.Header, error) {
	header, err := v.blocks.Header(ctx, number)
	return header, unknownBlock(err)
}

// Transactions returns the transactions of a block.
func (v *View) Transactions(ctx context.Context, number uint64) (*archive.Transactions, error) {
	all, err := v.blocks.Transactions(ctx, number, nil)
	return all, unknownBlock(err)
}

// FindBlock returns the number of the block with a hash, or ErrUnknownBlock.
func (v *View) FindBlock(ctx context.Context, hash starknet.Felt) (uint64, error) {
	number, err := v.blocks.FindBlock(ctx, hash)
	return number, unknownBlock(err)
}

// unknownBlock maps rows.ErrNotFound to ErrUnknownBlock. It keeps an archive.BeforeFirst, which
// gives the reason.
func unknownBlock(err error) error {
	if before := (*archive.BeforeFirst)(nil); errors.As(err, &before) {
		return err
	}
	if errors.Is(err, rows.ErrNotFound) {
		return ErrUnknownBlock
	}
	return err
}

// Receipt is a transaction with its block.
type Receipt struct {
	archive.Transaction
	Block *archive.Header
}

// FindReceipt returns the transaction with a hash, or ErrUnknownTransaction.
func (v *View) FindReceipt(ctx context.Context, hash starknet.Felt) (*Receipt, error) {
	place, found, err := v.blocks.FindTransaction(ctx, hash)
	if errors.Is(err, rows.ErrNotFound) {
		return nil, ErrUnknownTransaction
	}
	if err != nil {
		return nil, err
	}
	header, err := v.blocks.Header(ctx, place.Number)
	if err != nil {
		return nil, err
	}
	return &Receipt{Transaction: found, Block: header}, nil
}

// EventsOf calls visit with the events of a transaction, in order.
func (v *View) EventsOf(ctx context.Context, receipt *Receipt, visit func(*archive.Event) error) error {
	readEventsAhead(ctx, v.blocks, receipt)
	events := v.blocks.Events(ctx)
	for position := receipt.FirstEvent; position < receipt.FirstEvent+receipt.EventCount; position++ {
		event, err := events.Event(receipt.Block.Number, position)
		if err == nil {
			err = visit(&event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sortedSet returns the distinct values of a set in order.
func sortedSet(set []starknet.Felt) []starknet.Felt {
	if len(set) < 2 {
		return set
	}
	set = slices.Clone(set)
	slices.SortFunc(set, starknet.Felt.Cmp)
	return slices.Compact(set)
}
