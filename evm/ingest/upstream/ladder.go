package upstream

import (
	"context"
	"fmt"
	"slices"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

const (
	headersAtOnce = 64 // per request
	headersAhead  = 4  // requests in parallel
)

// ladder proves which blocks are the ancestors of a block. It holds the hash of the last
// block of each range ([rangeBlocks]), as far down as it was climbed.
type ladder struct {
	top   chain.Ref
	first uint64        // block number of the first rung
	rungs []common.Hash // ascending
	foot  chain.Ref     // the parent of the lowest block
}

// at returns the required hash of the last block of a range, or zero if it is unknown.
func (l *ladder) at(number uint64) common.Hash {
	if number == l.top.Number {
		return l.top.Hash
	}
	if number < l.first || number%rangeBlocks != rangeBlocks-1 {
		return common.Hash{}
	}
	if i := (number - l.first) / rangeBlocks; i < uint64(len(l.rungs)) {
		return l.rungs[i]
	}
	return common.Hash{}
}

// climb walks down from a block, header by header, until done returns true for a parent.
// Each header must have the hash that its child names, so a node can withhold headers but
// not invent them.
func (p *Pursuit) climb(ctx context.Context, from Node, top *types.Header, done func(parent chain.Ref) (bool, error)) (*ladder, error) {
	l := &ladder{top: chain.Ref{Number: top.Number.Uint64(), Hash: top.Hash()}}
	parent := chain.Ref{Number: l.top.Number - 1, Hash: top.ParentHash}
	var headers []*types.Header // received, up to the parent
	for {
		there, err := done(parent)
		if err != nil {
			return nil, err
		}
		if there {
			l.foot = parent
			slices.Reverse(l.rungs)
			return l, nil
		}
		if parent.Number == 0 {
			return nil, ErrTooDeep // its genesis differs
		}
		if len(headers) == 0 {
			err := p.within(ctx, func(ctx context.Context) (err error) {
				headers, err = headersUpTo(ctx, from, parent.Number)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		header := headers[len(headers)-1]
		headers = headers[:len(headers)-1]
		if got := header.Hash(); got != parent.Hash {
			return nil, fmt.Errorf("%w: header %d has the hash %#x, expected %#x", errMoved, parent.Number, got, parent.Hash)
		}
		if parent.Number%rangeBlocks == rangeBlocks-1 {
			l.first, l.rungs = parent.Number, append(l.rungs, parent.Hash)
		}
		parent = chain.Ref{Number: parent.Number - 1, Hash: header.ParentHash}
	}
}

// headersUpTo fetches consecutive headers up to a number, in parallel.
func headersUpTo(ctx context.Context, from Node, last uint64) ([]*types.Header, error) {
	parts := make([][]*types.Header, headersAhead)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		above := uint64(len(parts)-1-i) * headersAtOnce
		if above > last {
			continue
		}
		end := last - above
		begin := end + 1 - min(end+1, headersAtOnce)
		group.Go(func() (err error) {
			parts[i], err = from.Headers(ctx, begin, int(end+1-begin))
			return answered(err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []*types.Header
	for _, part := range parts {
		all = append(all, part...)
	}
	return all, nil
}
