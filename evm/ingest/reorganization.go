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
	before := f.Forkchoice().Head.Refs()
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

// Advance is [Follower.MoveHead] for a block that is above the current head; else it does nothing.
func (f *Follower) Advance(ctx context.Context, log *slog.Logger, to chain.Ref) error {
	if to.Number <= f.Forkchoice().Head.Ref().Number {
		return nil
	}
	return f.MoveHead(ctx, log, to.Hash)
}

// LogReorganization logs that the head has left a chain for a branch that does not have its last block. left is the
// chain from a settled block on, as [tip.Branch.Refs] returns it: its blocks may be dropped by now.
func (f *Follower) LogReorganization(ctx context.Context, log *slog.Logger, branch *tip.Branch, left []chain.Ref) {
	depth := 0
	for depth < len(left) {
		on, err := f.On(ctx, branch, left[len(left)-1-depth])
		if on || err != nil {
			break
		}
		depth++
	}
	if depth == 0 {
		return
	}
	from, head := left[len(left)-1], branch.Ref()
	log.Info("reorganization", "depth", depth, "from", from.Number, "from_hash", from.Hash, "to", head.Number, "to_hash", head.Hash)
}
