package ingest

import (
	"context"
	"log/slog"

	"ashlar/chain"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
)

// MoveHead makes a block on the way to a head that was named the current head, and logs a reorganization if the
// head leaves its branch. The safe and the final block stay.
func (f *Follower) MoveHead(ctx context.Context, log *slog.Logger, to common.Hash) error {
	before := f.Forkchoice().Head.Ref()
	branch, err := f.Branch(to)
	if err != nil {
		return err
	}
	if err := f.SetHead(ctx, to, chain.Ref{}, chain.Ref{}); err != nil {
		return err
	}
	f.LogReorganization(ctx, log, branch, before)
	return nil
}

// LogReorganization logs that the head has left a block for a branch that does not have it.
func (f *Follower) LogReorganization(ctx context.Context, log *slog.Logger, branch *tip.Branch, left chain.Ref) {
	if on, err := f.On(ctx, branch, left); err != nil || on {
		return
	}
	head := branch.Ref()
	log.Info("reorganization", "depth", f.depth(ctx, branch, left), "from", left.Number, "hash", left.Hash, "to", head.Number, "its", head.Hash)
}

// depth returns the number of blocks up to left that a branch does not have, as far as the tip
// knows them.
func (f *Follower) depth(ctx context.Context, branch *tip.Branch, left chain.Ref) uint64 {
	before, err := f.tip.Branch(left.Hash)
	if err != nil {
		return 1
	}
	number := left.Number
	for number > before.Settled().Number {
		at, ok := before.At(number)
		if on, err := f.On(ctx, branch, at); !ok || err != nil || on {
			break
		}
		number--
	}
	return left.Number - number
}
