package blocktests

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/core/types"
)

// mostTraced is about how many transactions of a block are traced by what those before them changed.
const mostTraced = 16

// checkChanges traces transactions by what those before them have changed, as it was stored by the import, and compares
// the traces with those of the whole block run in order.
func (t *target) checkChanges(ctx context.Context, blocks []*types.Block, r *result) error {
	for _, block := range blocks {
		changes, err := t.archive.Changes(ctx, block.NumberU64())
		if err != nil {
			return err
		}
		if changes == nil || len(block.Transactions()) < 2 {
			continue
		}
		if err := t.compareTraces(ctx, block, r); err != nil {
			return fmt.Errorf("block %d: %w", block.NumberU64(), err)
		}
	}
	return nil
}

// compareTraces compares the traces of a block.
func (t *target) compareTraces(ctx context.Context, block *types.Block, r *result) error {
	var inOrder [][]byte
	err := t.replay(ctx, block, nil, func(replay *execute.Replay) error {
		for range block.Transactions() {
			traced, err := t.trace(ctx, replay)
			if err != nil {
				return err
			}
			inOrder = append(inOrder, traced)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("traces in order: %w", err)
	}
	stored := storedBlock{t.archive, block.NumberU64()}
	for i := 1; i < len(inOrder); i += 1 + len(inOrder)/mostTraced {
		err := t.replay(ctx, block, stored, func(replay *execute.Replay) error {
			if err := replay.Skip(i); err != nil {
				return err
			}
			traced, err := t.trace(ctx, replay)
			if err == nil && !bytes.Equal(traced, inOrder[i]) {
				err = fmt.Errorf("the trace is %s, in order it is %s", traced, inOrder[i])
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("transaction %d: %w", i, err)
		}
		r.skipped++
	}
	return nil
}

// replay replays a block on its parent in the archive.
func (t *target) replay(ctx context.Context, block *types.Block, stored execute.StoredBlock, use func(*execute.Replay) error) error {
	header, err := t.archive.Header(ctx, block.NumberU64()-1)
	if err != nil {
		return err
	}
	parent := execute.Parent{
		Header: header.Header, State: t.archive.StateAt(header.Number.Uint64()), Ancestors: archive.Ancestors{History: &t.archive.History},
	}
	return t.executor.Replay(ctx, parent, execute.Decoded(block), execute.ReplayOptions{Stored: stored}, use)
}

// trace runs the next transaction of a replay. Its trace has all accounts and slots that the transaction uses, with their values.
func (t *target) trace(ctx context.Context, replay *execute.Replay) ([]byte, error) {
	config, err := trace.ParseConfig([]byte(`{"tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"prestateTracer":{}}}`), t.executor.Config())
	if err != nil {
		return nil, err
	}
	return config.AppendTransaction(ctx, replay, nil, anyRoom{})
}

// anyRoom is room for traces of any length.
type anyRoom struct{}

func (anyRoom) Check(int) error { return nil }

// storedBlock is what an archive has of a block. It implements execute.StoredBlock.
type storedBlock struct {
	archive *archive.Archive
	number  uint64
}

func (s storedBlock) AccessList(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }

func (s storedBlock) Changes(ctx context.Context) (execute.StoredChanges, error) {
	changes, err := s.archive.Changes(ctx, s.number)
	if changes == nil {
		return nil, err
	}
	return changes, err
}

func (s storedBlock) LogsBefore(ctx context.Context, index int) (uint64, error) {
	receipts, err := s.archive.Receipts(ctx, s.number, nil)
	if err != nil {
		return 0, err
	}
	return receipts.LogsBefore(index)
}
