package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/check"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

const (
	headersAtOnce = 64 // headers that are in memory, before those that may have logs are read
	blocksAtOnce  = 8  // of them. At first fewer, because a page of events may need no more
)

// checkedLogsOf returns the logs of the block with the hash of a filter, from checked receipts.
func (c *Chain) checkedLogsOf(ctx context.Context, view *forwarded.View, f *Filter) ([]Log, error) {
	b, err := c.CheckedBlockByHash(ctx, view, *f.Hash)
	if err == nil && b == nil {
		err = fmt.Errorf("%w: %s", upstream.ErrPruned, f.Hash)
	}
	if err != nil {
		return nil, err
	}
	logs, err := c.selectLogs(ctx, view, f, []*check.Block{b})
	if err != nil {
		return nil, err
	}
	return logs[0], nil
}

// checkedLogs is Logs of a range from checked receipts: the headers of the range, each the parent
// of the next, and the receipts of the blocks whose bloom filters match.
func (c *Chain) checkedLogs(ctx context.Context, view *forwarded.View, f *Filter, limit int, found func(*Log) error) error {
	end, err := Resolve(view, chain.BlockID{Number: f.To})
	if err != nil {
		return err
	}
	if _, err = c.Linked(ctx, end); err != nil {
		return err
	}
	count, atOnce := 0, 1
	var last *types.Header // nil before the first
	for from := f.From; from <= f.To; from += headersAtOnce {
		headers, err := c.headers(ctx, view, from, min(f.To, from+headersAtOnce-1))
		if err != nil {
			return err
		}
		var matching []Block
		for _, h := range headers {
			if last != nil && h.ParentHash != last.Hash() {
				return fmt.Errorf("%w: block %d is not the child of block %d", upstream.ErrUnavailable, h.Number, last.Number)
			}
			if last = h; f.mayMatch(h.Bloom) {
				number := h.Number.Uint64()
				matching = append(matching, Block{Number: number, Hash: h.Hash(), Final: view.IsFinal(number)})
			}
		}
		for len(matching) > 0 {
			blocks := matching[:min(atOnce, len(matching))]
			matching, atOnce = matching[len(blocks):], min(2*atOnce, blocksAtOnce)
			logs, err := c.checkedLogsIn(ctx, view, f, blocks)
			if err != nil {
				return err
			}
			for i := range blocks {
				if count += len(logs[i]); count > limit {
					return tooManyAt(f, blocks[i].Number, limit)
				}
				if err := each(logs[i], found); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// headers asks for the headers of some blocks, and checks them.
func (c *Chain) headers(ctx context.Context, view *forwarded.View, from, to uint64) ([]*types.Header, error) {
	blocks, err := c.blocks(ctx, view, from, to)
	if err != nil {
		return nil, err
	}
	headers, claims := make([]*types.Header, len(blocks)), make([]claim, len(blocks))
	for i, block := range blocks {
		q := block.question(false)
		q.Stored, q.Check = true, BlockCheck(block)
		claims[i] = claim{Question: q, recompute: func(answer json.RawMessage) (err error) {
			headers[i], _, err = check.DecodeHeader(answer)
			return lie(err)
		}}
	}
	return headers, c.verify(ctx, view, claims...)
}

// blocks returns blocks by their numbers, with the hashes of those that were followed.
func (c *Chain) blocks(ctx context.Context, view *forwarded.View, from, to uint64) ([]Block, error) {
	blocks := make([]Block, to-from+1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i := range blocks {
		group.Go(func() error {
			block, err := Resolve(view, chain.BlockID{Number: from + uint64(i)})
			if err == nil && block.Hash == (common.Hash{}) {
				block.Hash, _, err = c.followed(ctx, block.Number)
			}
			blocks[i] = block
			return err
		})
	}
	return blocks, group.Wait()
}

// mayMatch reports whether a block with a bloom filter may have logs that the filter selects.
func (f *Filter) mayMatch(bloom types.Bloom) bool {
	if bloom == (types.Bloom{}) {
		return false
	}
	if len(f.Addresses) > 0 && !slices.ContainsFunc(f.Addresses, func(a common.Address) bool { return bloom.Test(a[:]) }) {
		return false
	}
	for _, allowed := range f.Topics {
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(topic common.Hash) bool { return bloom.Test(topic[:]) }) {
			return false
		}
	}
	return true
}

// checkedLogsIn returns the logs of each of some blocks that the filter selects.
func (c *Chain) checkedLogsIn(ctx context.Context, view *forwarded.View, f *Filter, blocks []Block) ([][]Log, error) {
	checked, claims := make([]*check.Block, len(blocks)), make([]claim, len(blocks))
	for i, block := range blocks {
		claims[i] = blockClaim(block.question(true), BlockCheck(block), &checked[i])
	}
	if err := c.verify(ctx, view, claims...); err != nil {
		return nil, err
	}
	return c.selectLogs(ctx, view, f, checked)
}

// selectLogs returns the logs of each of some blocks that the filter selects, from checked receipts.
func (c *Chain) selectLogs(ctx context.Context, view *forwarded.View, f *Filter, blocks []*check.Block) ([][]Log, error) {
	logs, claims := make([][]Log, len(blocks)), make([]claim, len(blocks))
	for i, b := range blocks {
		claims[i] = receiptsClaim(view, b, func(receipts []*check.Receipt) (err error) {
			logs[i], err = f.of(receipts)
			return err
		})
	}
	return logs, c.verify(ctx, view, claims...)
}

// of returns the logs of receipts that the filter selects.
func (f *Filter) of(receipts []*check.Receipt) (logs []Log, err error) {
	for _, r := range receipts {
		for _, log := range r.Logs {
			one := Log{
				Block: log.BlockNumber, BlockHash: log.BlockHash, Index: uint64(log.Index), Address: log.Address, Topics: log.Topics, Transaction: log.TxHash,
			}
			if !f.Match(&one) {
				continue
			}
			if one.JSON, err = json.Marshal(log); err != nil {
				return nil, err
			}
			logs = append(logs, one)
		}
	}
	return logs, nil
}
