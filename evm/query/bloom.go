package query

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

const (
	bloomAhead   = 64 // blocks that may have matching logs, fetched at once
	bloomFetches = 8  // side by side
)

// bloomLogs iterates over matching logs where there is no index. The bloom of a block's
// header says whether it may have any, and only then are its receipts read. It is complete:
// the headers are linked to the head.
type bloomLogs struct {
	ctx    context.Context
	view   *View
	wanted *criteria
	to     uint64
	next   uint64   // the first block that has not been looked at
	maybe  []uint64 // blocks before next that may have matching logs
}

// Next implements [paging.Candidates].
func (b *bloomLogs) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	b.next = max(b.next, block)
	for {
		for len(b.maybe) > 0 {
			number := b.maybe[0]
			b.maybe = b.maybe[1:]
			if number < block {
				continue
			}
			found, err := b.matching(number, dst)
			if err != nil || len(found) > len(dst) {
				return number, found, err == nil, err
			}
		}
		if b.next > b.to {
			return 0, dst, false, nil
		}
		if err := b.fill(); err != nil {
			return 0, dst, false, err
		}
	}
}

// fill finds the next blocks that may have matching logs, and fetches their receipts.
func (b *bloomLogs) fill() error {
	b.maybe = b.maybe[:0]
	for ; b.next <= b.to && len(b.maybe) < bloomAhead; b.next++ {
		bloom, err := b.view.bloom(b.ctx, b.next)
		if err != nil {
			return err
		}
		if b.wanted.mayBeIn(&bloom) {
			b.maybe = append(b.maybe, b.next)
		}
	}
	group, ctx := errgroup.WithContext(b.ctx)
	group.SetLimit(bloomFetches)
	for _, number := range b.maybe {
		group.Go(func() error {
			_, err := b.view.Receipts(ctx, number, nil)
			return err
		})
	}
	return group.Wait()
}

// matching appends the positions of the matching logs of a block.
func (b *bloomLogs) matching(number uint64, dst []uint32) ([]uint32, error) {
	receipts, err := b.view.Receipts(b.ctx, number, nil)
	if err != nil {
		return dst, err
	}
	count, err := receipts.LogCount()
	if err != nil {
		return dst, err
	}
	logs := blockLogs{receipts: receipts}
	for position := range uint64(count) {
		log, err := logs.at(position)
		if err != nil {
			return dst, err
		}
		if b.wanted.match(&log) {
			dst = append(dst, uint32(position))
		}
	}
	return dst, nil
}

// Close implements [candidates].
func (b *bloomLogs) Close() error { return nil }

// bloom returns the bloom of a block's logs.
func (v *View) bloom(ctx context.Context, number uint64) (types.Bloom, error) {
	if v.chain.remote != nil && !v.history.Stores(number) && (v.branch == nil || number <= v.branch.Settled().Number) {
		header, err := v.chain.remote.Header(ctx, number)
		if err != nil {
			return types.Bloom{}, err
		}
		return header.Bloom, nil
	}
	header, err := v.Header(ctx, number)
	if err != nil {
		return types.Bloom{}, err
	}
	return header.Bloom, nil
}

// mayBeIn reports whether logs with a bloom may match.
func (c *criteria) mayBeIn(bloom *types.Bloom) bool {
	if *bloom == (types.Bloom{}) {
		return false
	}
	if len(c.addresses) > 0 && !anyIn(c.addresses, bloom, common.Address.Bytes) {
		return false
	}
	for _, allowed := range c.topics {
		if len(allowed) > 0 && !anyIn(allowed, bloom, common.Hash.Bytes) {
			return false
		}
	}
	return true
}

func anyIn[T any](set []T, bloom *types.Bloom, bytes func(T) []byte) bool {
	for _, value := range set {
		if bloom.Test(bytes(value)) {
			return true
		}
	}
	return false
}
