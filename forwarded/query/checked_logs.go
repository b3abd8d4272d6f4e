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
	askedAtOnce   = 16 // of them
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
	return c.selectLogs(ctx, view, f, b)
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
	count := 0
	var last common.Hash // of the last header; zero before the first
	for from := f.From; from <= f.To; from += headersAtOnce {
		to := min(f.To, from+headersAtOnce-1)
		headers, err := c.headers(ctx, view, from, to)
		if err != nil {
			return err
		}
		for i, h := range headers {
			if last != (common.Hash{}) && h.ParentHash != last {
				return fmt.Errorf("%w: block %d is not the child of block %d", upstream.ErrUnavailable, h.Number, h.Number.Uint64()-1)
			}
			last = h.Hash()
			if !f.mayMatch(h.Bloom) {
				continue
			}
			number := from + uint64(i)
			b, err := c.CheckedBlock(ctx, view, Block{Number: number, Hash: last, Final: view.IsFinal(number)})
			if err != nil {
				return err
			}
			logs, err := c.selectLogs(ctx, view, f, b)
			if err != nil {
				return err
			}
			if count += len(logs); count > limit {
				return tooManyAt(f, number, limit)
			}
			if err := each(logs, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// headers asks for the headers of some blocks, and checks them.
func (c *Chain) headers(ctx context.Context, view *forwarded.View, from, to uint64) ([]*types.Header, error) {
	headers := make([]*types.Header, to-from+1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i := range headers {
		group.Go(func() error {
			block, err := Resolve(view, chain.BlockID{Number: from + uint64(i)})
			if err != nil {
				return err
			}
			if block.Hash == (common.Hash{}) {
				if block.Hash, _, err = c.followed(ctx, block.Number); err != nil {
					return err
				}
			}
			q := block.question(false)
			q.Stored, q.Check = true, HeaderCheck(BlockCheck(block))
			answer, err := c.Ask(ctx, view, q)
			if err == nil {
				headers[i], _, err = check.DecodeHeader(answer)
			}
			return err
		})
	}
	return headers, group.Wait()
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

// selectLogs returns the logs of a block that the filter selects, from checked receipts.
func (c *Chain) selectLogs(ctx context.Context, view *forwarded.View, f *Filter, b *check.Block) (logs []Log, err error) {
	receipts, err := c.CheckedReceipts(ctx, view, b)
	if err != nil {
		return nil, err
	}
	for _, r := range receipts {
		for _, log := range r.Logs {
			text, err := json.Marshal(log)
			if err != nil {
				return nil, err
			}
			one, err := decodeLog(text)
			if err != nil {
				return nil, err
			}
			if f.Match(&one) {
				logs = append(logs, one)
			}
		}
	}
	return logs, nil
}
