// Package query answers questions about a Starknet network. Every question takes
// one [View] and asks it alone, so that no answer mixes two blocks.
package query

import (
	"context"
	"errors"
	"slices"

	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/starknet"
	"ashlar/starknet/archive"
)

// The kinds of what cannot be answered.
var (
	ErrUnknownBlock       = errors.New("no such block")
	ErrUnknownTransaction = errors.New("no such transaction")
)

// Chain is one network that can be asked. It may be used from many goroutines at once.
type Chain struct {
	archive *archive.Archive
	tip     func() *tip.Tip
}

// NewChain makes the chain that an archive holds, with the unsettled blocks above
// it of what tip returns. That may be nil as long as there are none.
func NewChain(a *archive.Archive, tip func() *tip.Tip) *Chain { return &Chain{archive: a, tip: tip} }

// ID is the chain's ID as text, like SN_MAIN.
func (c *Chain) ID() string { return c.archive.ChainID() }

// View returns the chain as it is now; nil where it has no blocks.
func (c *Chain) View() *View {
	span := c.archive.Span()
	if span == nil {
		return nil
	}
	above := c.tip()
	if above == nil {
		return &View{c.archive.Settled(span)}
	}
	branch := above.Standing().Head
	whole := archive.Span{First: span.First, Last: branch.Ref()}
	return &View{c.archive.Over(branch.Over(c.archive.Rows()), whole, branch.Settled().Number)}
}

// View is a chain as of one head. It costs next to nothing to make, holds no
// resources, and may be used from many goroutines at once.
type View struct{ blocks *archive.Reader }

// Span is the first block that is held and the last.
func (v *View) Span() archive.Span { return v.blocks.Span() }

// Header returns the header of a block: ErrUnknownBlock above the head, an
// [*archive.BeforeFirst] below the first block. The caller must not change it.
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

// unknownBlock words what an archive says of a block that is not there. Where it
// says why, that is kept.
func unknownBlock(err error) error {
	if before := (*archive.BeforeFirst)(nil); errors.As(err, &before) {
		return err
	}
	if errors.Is(err, rows.ErrNotFound) {
		return ErrUnknownBlock
	}
	return err
}

// Receipt is a transaction with its place and its events.
type Receipt struct {
	archive.Transaction
	Block *archive.Header
	Index int // its position in the block
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
	return &Receipt{Transaction: found, Block: header, Index: place.Index}, nil
}

// EventsOf calls visit with the events of a transaction, in their order.
func (v *View) EventsOf(ctx context.Context, receipt *Receipt, visit func(*archive.Event) error) error {
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

// sortedSet returns the values of a set in order, each once.
func sortedSet(set []starknet.Felt) []starknet.Felt {
	if len(set) < 2 {
		return set
	}
	set = slices.Clone(set)
	slices.SortFunc(set, starknet.Felt.Cmp)
	return slices.Compact(set)
}
