package api

import (
	"context"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
)

// framesAt calls add with the frames of a block at positions that the trace index has named.
// The memory of all frames of their transactions counts against the room of the list.
func (a *API) framesAt(ctx context.Context, view *query.View, found query.BlockTraces, list *frameList, add func(*trace.Frame) error) error {
	counts, err := view.TraceCounts(ctx, found.Number)
	if err != nil {
		return err
	}
	return view.Replay(ctx, found.Number, execute.ReplayOptions{}, func(r *execute.Replay) error {
		block, positions, begin := r.Block(), found.Positions, 0
		defer func() { list.ranAside = r.RanAside() }()
		for _, index := range tracedTransactions(counts.Ends, positions) {
			r.Expect(index, index+1)
		}
		for index, end := range counts.Ends {
			if len(positions) == 0 {
				return nil
			}
			if int(positions[0]) >= end {
				begin = end
				continue
			}
			if err := r.Skip(index); err != nil {
				return err
			}
			replayed, err := trace.Kinds{Trace: true}.Transaction(ctx, r, a.chain.Executor().Config(), len(list.out), list.room)
			if err != nil {
				return err
			}
			if len(replayed.Frames) != end-begin {
				return fmt.Errorf("%w: block %d: the trace index has %d traces of transaction %d, which has %d", archive.ErrCorrupt, found.Number, end-begin, index, len(replayed.Frames))
			}
			for ; len(positions) > 0 && int(positions[0]) < end; positions = positions[1:] {
				if err := add(&replayed.Frames[int(positions[0])-begin]); err != nil {
					return err
				}
			}
			begin = end
		}
		return a.rewardsAt(block, positions, begin, add)
	})
}

// tracedTransactions returns the transactions with the traces at ascending positions. ends are the ends of the traces of each
// transaction.
func tracedTransactions(ends []int, positions []uint32) []int {
	indices := []int{}
	for index, end := range ends {
		n := 0
		for n < len(positions) && int(positions[n]) < end {
			n++
		}
		if n > 0 {
			indices = append(indices, index)
			positions = positions[n:]
		}
	}
	return indices
}

// rewardsAt calls add with the frames of a block's rewards at positions. The first reward is
// at begin.
func (a *API) rewardsAt(block execute.Block, positions []uint32, begin int, add func(*trace.Frame) error) error {
	rewards, err := a.rewards(block)
	if err != nil {
		return err
	}
	for _, position := range positions {
		i := int(position) - begin
		if i >= len(rewards) {
			return fmt.Errorf("%w: block %d: the trace index has a reward %d of %d", archive.ErrCorrupt, block.Header().Number, i, len(rewards))
		}
		frame := trace.RewardFrame(block, &rewards[i])
		if err := add(&frame); err != nil {
			return err
		}
	}
	return nil
}

// rewards returns the rewards of a block; none if it is of proof of stake.
func (a *API) rewards(block execute.Block) ([]execute.Reward, error) {
	uncles, err := block.Uncles()
	if err != nil {
		return nil, err
	}
	return a.chain.Executor().Rewards(block.Header(), uncles), nil
}
