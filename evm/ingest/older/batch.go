package older

import (
	"context"
	"fmt"
	"io"

	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

const (
	headersAtOnce = 64 // per request
	headersAhead  = 4  // requests in parallel
	rangeBlocks   = 16 // per request
	rangesAhead   = 3  // requested in parallel and held in memory
)

// batch are the blocks that are added together. It implements [ingest.RecordedSource].
type batch struct {
	source  *Source
	node    Node
	first   uint64          // block number of headers[0]
	headers []*types.Header // proven
	hashes  []common.Hash

	ready   chan chan fetched
	current []recorded // rest of the current range
	cancel  context.CancelFunc
	group   *errgroup.Group
}

// recorded is a block with its receipts.
type recorded struct {
	block      *types.Block
	receipts   types.Receipts
	accessList []byte // nil if the block has none
}

type fetched struct {
	blocks []recorded
	err    error
}

// climb fetches the headers down to the first one. Each must have the hash that its child
// names: the topmost that of a block of the archive.
func (b *batch) climb(ctx context.Context, child uint64, parent common.Hash) error {
	b.headers = make([]*types.Header, child-b.first)
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(headersAhead)
	for from := b.first; from < child; from += headersAtOnce {
		group.Go(func() error {
			count := int(min(headersAtOnce, child-from))
			fetching, cancel := context.WithTimeout(fetching, b.source.pace.Step)
			defer cancel()
			headers, err := b.node.Headers(fetching, from, count)
			copy(b.headers[from-b.first:], headers)
			return answered(err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.hashes = make([]common.Hash, len(b.headers))
	for i := len(b.headers) - 1; i >= 0; i-- {
		number := b.first + uint64(i)
		if b.hashes[i] = b.headers[i].Hash(); b.hashes[i] != parent {
			return answered(fmt.Errorf("%w: header %d has the hash %#x, expected %#x, the parent of block %d", ingest.ErrOtherChain, number, b.hashes[i], parent, number+1))
		}
		parent = b.headers[i].ParentHash
	}
	return nil
}

// begin requests the blocks. close must be called.
func (b *batch) begin(ctx context.Context) {
	ctx, b.cancel = context.WithCancel(ctx)
	b.ready = make(chan chan fetched, rangesAhead-1)
	b.group, ctx = errgroup.WithContext(ctx)
	b.group.Go(func() error {
		defer close(b.ready)
		for from := 0; from < len(b.headers); from += rangeBlocks {
			answer := make(chan fetched, 1)
			select {
			case b.ready <- answer:
			case <-ctx.Done():
				return nil
			}
			b.group.Go(func() error {
				blocks, err := b.fetch(ctx, from, min(from+rangeBlocks, len(b.headers)))
				answer <- fetched{blocks, answered(err)}
				return nil
			})
		}
		return nil
	})
}

// close cancels outstanding requests and waits for them.
func (b *batch) close() {
	b.cancel()
	_ = b.group.Wait() // errors are part of the answers
}

// fetch requests the blocks of the headers from begin to end, and what belongs to them.
func (b *batch) fetch(ctx context.Context, begin, end int) ([]recorded, error) {
	ctx, cancel := context.WithTimeout(ctx, b.source.pace.Step)
	defer cancel()
	var all []recorded
	var withReceipts, withLists []int // indexes of all
	for len(all) < end-begin {
		at := begin + len(all)
		blocks, err := b.node.Blocks(ctx, b.first+uint64(at), end-at)
		if err != nil {
			return nil, err
		}
		for i, block := range blocks {
			if got, want := block.Hash(), b.hashes[at+i]; got != want {
				return nil, fmt.Errorf("%w: block %d has the hash %#x, expected %#x", ingest.ErrOtherChain, b.first+uint64(at+i), got, want)
			}
			if block.ReceiptHash() != types.EmptyReceiptsHash {
				withReceipts = append(withReceipts, len(all))
			}
			if block.Header().BlockAccessListHash != nil {
				withLists = append(withLists, len(all))
			}
			all = append(all, recorded{block: block})
		}
	}
	hashOf := func(i int) common.Hash { return b.hashes[begin+i] }
	err := each(ctx, withReceipts, hashOf, b.node.Receipts, func(i int, r types.Receipts) { all[i].receipts = r })
	if err == nil {
		err = each(ctx, withLists, hashOf, b.node.AccessLists, func(i int, list []byte) { all[i].accessList = list })
	}
	if err != nil {
		return nil, fmt.Errorf("blocks %d to %d: %w", b.first+uint64(begin), b.first+uint64(end)-1, err)
	}
	return all, nil
}

// each requests one thing for each of some blocks, until all of them were given.
func each[T any](ctx context.Context, of []int, hash func(int) common.Hash, ask func(context.Context, []common.Hash) ([]T, error), give func(int, T)) error {
	for len(of) > 0 {
		hashes := make([]common.Hash, len(of))
		for i, at := range of {
			hashes[i] = hash(at)
		}
		got, err := ask(ctx, hashes)
		if err != nil {
			return err
		}
		for i, one := range got {
			give(of[i], one)
		}
		of = of[len(got):]
	}
	return nil
}

// First implements [ingest.RecordedSource].
func (b *batch) First() uint64 { return b.first }

// Header implements [ingest.RecordedSource].
func (b *batch) Header(number uint64) (*types.Header, common.Hash) {
	if number < b.first || number-b.first >= uint64(len(b.headers)) {
		return nil, common.Hash{}
	}
	return b.headers[number-b.first], b.hashes[number-b.first]
}

// NextRecorded implements [ingest.RecordedSource].
func (b *batch) NextRecorded() (*types.Block, types.Receipts, []byte, error) {
	if len(b.current) == 0 {
		answer, ok := <-b.ready
		if !ok {
			return nil, nil, nil, io.EOF
		}
		got := <-answer
		if got.err != nil {
			return nil, nil, nil, got.err
		}
		b.current = got.blocks
	}
	next := b.current[0]
	b.current = b.current[1:]
	b.source.arrived.Add(1)
	return next.block, next.receipts, next.accessList, nil
}
