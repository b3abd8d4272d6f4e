package network

import (
	"context"
	"log/slog"
	"time"

	"ashlar/chain"
	"ashlar/starknet"
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
		number, err := n.layer1.L1Accepted(ctx, func(block chain.Ref) error { return n.chain.Fits(ctx, block) })
		switch {
		case err == nil:
			n.chain.SetL1Accepted(number)
			logged = false
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
