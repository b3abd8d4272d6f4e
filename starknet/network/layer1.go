package network

import (
	"context"
	"log/slog"
	"math"
	"time"

	"ashlar/chain"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// layer1Every is the time between two questions what is accepted on layer 1. State
	// updates there are hours apart.
	layer1Every = 30 * time.Second
	// layer1Recall is how many stored blocks, from the newest down, are looked at for one
	// that was already accepted on layer 1 when it was imported.
	layer1Recall = 1000
)

// recallL1 finds the newest stored block that is known to be accepted on layer 1.
func (n *network) recallL1(ctx context.Context) error {
	view := n.chain.View()
	if view == nil {
		return nil
	}
	if err := n.readL1(ctx); err != nil {
		return err
	}
	span := view.Span()
	for number, looks := span.Last.Number, 0; looks < layer1Recall; number, looks = number-1, looks+1 {
		header, err := view.Header(ctx, number)
		if err != nil {
			return err
		}
		if header.Status == starknet.AcceptedOnL1 {
			n.chain.SetL1Accepted(number)
			return nil
		}
		if number == span.First {
			return nil
		}
	}
	return nil
}

// watchL1 asks the nodes which block is the latest that is accepted on layer 1, until ctx is
// done. Nodes that do not know are asked again: they may be replaced by newer versions.
func (n *network) watchL1(ctx context.Context) {
	tick := time.NewTicker(layer1Every)
	defer tick.Stop()
	for logged := false; ; {
		number, err := n.askL1(ctx)
		switch {
		case err == nil:
			n.chain.SetL1Accepted(number)
			logged = false
			if err := n.storeL1(ctx); err != nil && ctx.Err() == nil {
				slog.Warn("which blocks are accepted on L1 is not stored, so other readers do not know it", "network", n.name, "error", err)
			}
		case ctx.Err() == nil && !logged:
			logged = true
			slog.Info("the nodes do not say which blocks are accepted on L1", "network", n.name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// askL1 asks the nodes for the latest block that is accepted on layer 1, up to the newest one here. If a later one
// is accepted, the newest one here need not be: it can be of a branch that the nodes have left. So the nodes must
// have that one.
func (n *network) askL1(ctx context.Context) (uint64, error) {
	most := uint64(math.MaxUint64) // without a block here, none is falsely accepted
	if view := n.chain.View(); view != nil {
		most = view.Span().Last.Number
	}
	return n.layer1.L1Accepted(ctx, most, func(block chain.Ref) error { return n.chain.Fits(ctx, block) })
}

// storeL1 stores the newest block here that is known to be accepted on layer 1, for processes that ask no nodes and for the next
// start. Only the process that writes does.
func (n *network) storeL1(ctx context.Context) error {
	view := n.chain.View()
	if n.watched != nil || view == nil {
		return nil
	}
	number, known := view.L1Accepted()
	if !known {
		return nil
	}
	header, err := view.Header(ctx, number)
	if err != nil {
		return err
	}
	now := chain.Ref{Number: number, Hash: common.Hash(header.Hash)}
	if before, _, err := n.archive.Layer1(ctx); err != nil || before == now {
		return err
	}
	return n.archive.SetLayer1(ctx, now)
}

// readL1 reads what the process that writes has stored, see storeL1. A block that is not here does not count: the chain may have
// been rewound since.
func (n *network) readL1(ctx context.Context) error {
	accepted, stored, err := n.archive.Layer1(ctx)
	view := n.chain.View()
	if err != nil || !stored || view == nil || accepted.Number < view.Span().First || accepted.Number > view.Span().Last.Number {
		return err
	}
	header, err := view.Header(ctx, accepted.Number)
	if err == nil && common.Hash(header.Hash) == accepted.Hash {
		n.chain.SetL1Accepted(accepted.Number)
	}
	return err
}

// watchStoredL1 reads now and then what another process has stored, until ctx is done.
func (n *network) watchStoredL1(ctx context.Context) {
	tick := time.NewTicker(layer1Every)
	defer tick.Stop()
	for failing := false; ; {
		err := n.readL1(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			slog.Warn("which blocks are accepted on L1 cannot be read; trying again", "network", n.name, "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
