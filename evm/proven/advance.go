package proven

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/tip"

	"golang.org/x/sync/errgroup"
)

const (
	// unsettledMost and unsettledUnfinalized are how many blocks the tip keeps: branches that
	// fork off below are refused. The second is for chains that do not say what is final.
	unsettledMost        = 256
	unsettledUnfinalized = 128
	// blocksAtOnce are fetched side by side, and shown together.
	blocksAtOnce     = 16
	blocksSideBySide = 4
)

// ErrTooDeep means that a head does not descend from the last settled block.
var ErrTooDeep = errors.New("its chain forks off below the last final block")

// advance moves the head to the one of a claim.
func (h *Head) advance(ctx context.Context, claim Forkchoice) error {
	ours := h.tip.Forkchoice().Head
	if at, ok := ours.At(claim.Head.Number); ok && at == claim.Head && h.anchored {
		claim.Head = ours.Ref() // the nodes lag
		h.arrive()
		return h.show(ctx, claim.Head, claim)
	}
	if h.anchored && claim.Head.Number <= ours.Settled().Number {
		if claim.Head.Number < ours.Settled().Number {
			return nil // the nodes lag far behind, or lie
		}
		return ErrTooDeep
	}
	path, err := h.path(ctx, claim)
	if err != nil {
		return err
	}
	for len(path) > 0 {
		some := path[:min(blocksAtOnce, len(path))]
		path = path[len(some):]
		if err := h.add(ctx, some); err != nil {
			return err
		}
		last := some[len(some)-1]
		if last.Number < h.tip.Forkchoice().Head.Ref().Number && last != claim.Head {
			continue // of another branch, not as high as ours yet
		}
		if err := h.show(ctx, last, claim); err != nil {
			return err
		}
	}
	if err := h.show(ctx, claim.Head, claim); err != nil {
		return err
	}
	h.arrive()
	return nil
}

// path returns the blocks to add to the tip to reach a head, lowest first. If they are too
// many, it moves the last settled block up.
func (h *Head) path(ctx context.Context, claim Forkchoice) ([]chain.Ref, error) {
	head := claim.Head
	depth := uint64(unsettledMost)
	if claim.Finalized == (chain.Ref{}) {
		depth = unsettledUnfinalized
	}
	settled := h.tip.Forkchoice().Head.Settled()
	lowest := head.Number - min(head.Number, depth)
	if claim.Finalized.Number < head.Number {
		lowest = max(lowest, claim.Finalized.Number)
	}
	executed := h.executed()
	if executed.Number < head.Number {
		lowest = max(lowest, executed.Number)
	}
	stop := settled.Number
	if !h.anchored {
		stop = lowest
	}
	path, err := h.descend(ctx, head, stop)
	if err != nil {
		return nil, err
	}
	if h.anchored && path[0].Number <= settled.Number && path[0] != settled {
		return nil, ErrTooDeep
	}
	if executed.Number > 0 {
		for _, ref := range path {
			if ref.Number == executed.Number && ref != executed {
				return nil, fmt.Errorf("its block %s is not the one that was executed here, %s", ref, executed)
			}
		}
	}
	if h.anchored && (head.Number <= settled.Number+depth || path[0] != settled) {
		return path[1:], nil
	}
	return path[lowest-path[0].Number+1:], h.anchor(ctx, path[:lowest-path[0].Number+1], h.anchored)
}

// descend returns the ancestors of a block and the block itself, from a block of the tip, or
// one with the number stop, on.
func (h *Head) descend(ctx context.Context, head chain.Ref, stop uint64) ([]chain.Ref, error) {
	top, err := h.remote.blockOf(ctx, head.Hash)
	if err != nil {
		return nil, fmt.Errorf("head %s: %w", head, err)
	}
	if got := top.Block.NumberU64(); got != head.Number {
		return nil, fmt.Errorf("head %s: the number of the block with that hash is %d", head, got)
	}
	path := []chain.Ref{head}
	if head.Number > stop {
		path = append(path, chain.Ref{Number: head.Number - 1, Hash: top.Block.ParentHash()})
	}
	for {
		last := path[len(path)-1]
		if last.Number <= stop || last.Number == 0 || h.anchored && h.tip.Has(last.Hash) {
			slices.Reverse(path)
			return path, nil
		}
		first := last.Number - min(last.Number-(stop+1), rungBlocks-1)
		// A node with another hash there may be on another branch.
		headers, err := h.remote.linkedHeaders(ctx, first, last, func(_, format string, args ...any) error {
			return fmt.Errorf("%w: %w", ErrNotFound, fmt.Errorf(format, args...))
		})
		if err != nil {
			return nil, fmt.Errorf("find the ancestors of head %s: %w", head, err)
		}
		for _, header := range slices.Backward(headers) {
			ref := chain.Ref{Number: header.Number.Uint64() - 1, Hash: header.ParentHash}
			path = append(path, ref)
			if h.anchored && h.tip.Has(ref.Hash) {
				break
			}
		}
	}
}

// anchor makes the last of some blocks the settled one. They follow the settled one if that
// has been moved before.
func (h *Head) anchor(ctx context.Context, path []chain.Ref, follow bool) error {
	to := path[len(path)-1]
	if to.Number == 0 && to != h.remote.spine.genesis {
		return fmt.Errorf("%w: its first block is %#x, expected %#x", ErrOtherChain, to.Hash, h.remote.spine.genesis.Hash)
	}
	if !follow {
		path = nil
	}
	h.remote.spine.raise(to, path)
	if to != h.tip.Forkchoice().Head.Settled() {
		if err := h.tip.Overtaken(ctx, to); err != nil {
			return err
		}
	}
	h.anchored = true
	return nil
}

// add fetches blocks with their receipts and adds them to the tip.
func (h *Head) add(ctx context.Context, path []chain.Ref) error {
	blocks := make([]*evm.Delta, len(path))
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(blocksSideBySide)
	for i, ref := range path {
		group.Go(func() error {
			proven, err := h.remote.blockOf(fetching, ref.Hash)
			if err != nil {
				return err
			}
			block := *proven
			block.Receipts, err = h.remote.receiptsOf(fetching, block.Block)
			blocks[i] = &block
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, delta := range blocks {
		rows := new(tip.Rows)
		if err := archive.EncodeContents(rows, delta, new(big.Int)); err != nil {
			return err
		}
		if err := h.tip.Prune(ctx, 2*unsettledMost+blocksAtOnce, delta.Block.ParentHash()); err != nil {
			return err
		}
		if err := h.tip.Add(ctx, path[i], delta.Block.ParentHash(), rows); err != nil {
			return err
		}
	}
	return nil
}

// show makes a block of the tip the head, and settles what is due.
func (h *Head) show(ctx context.Context, head chain.Ref, claim Forkchoice) error {
	branch, err := h.tip.Branch(head.Hash)
	if err != nil {
		return err
	}
	on := func(ref chain.Ref) chain.Ref {
		if at, ok := branch.At(ref.Number); ok && at == ref {
			return ref
		}
		return chain.Ref{}
	}
	before := h.tip.Forkchoice()
	finalized := on(claim.Finalized)
	if finalized.Number < before.Finalized.Number {
		finalized = chain.Ref{}
	}
	if err := h.tip.SetHead(ctx, head.Hash, on(claim.Safe), finalized); err != nil {
		return err
	}
	return h.settle(ctx)
}

// executed returns the last settled block that was executed here.
func (h *Head) executed() chain.Ref {
	if h.config.Settled == nil {
		return chain.Ref{}
	}
	return h.config.Settled()
}

// settle settles blocks that are final, deep enough, or executed here.
func (h *Head) settle(ctx context.Context) error {
	now := h.tip.Forkchoice()
	head := now.Head.Ref().Number
	due := head - min(head, unsettledMost)
	if now.Finalized == (chain.Ref{}) {
		due = head - min(head, unsettledUnfinalized)
	} else if at, ok := now.Head.At(now.Finalized.Number); ok && at == now.Finalized {
		due = max(due, at.Number)
	}
	if executed := h.executed(); executed.Number > due {
		if at, ok := now.Head.At(executed.Number); ok && at == executed {
			due = executed.Number
		}
	}
	settled := now.Head.Settled()
	if due <= settled.Number {
		return nil
	}
	var path []chain.Ref
	for number := settled.Number; number < due; number++ {
		at, _ := now.Head.At(number)
		path = append(path, at)
	}
	to, _ := now.Head.At(due)
	h.remote.spine.raise(to, path)
	return h.tip.Settled(ctx, to)
}
