package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/madeup"
)

// demoStarknetID is the ID of the chain of the demo's Starknet network.
const demoStarknetID = "SN_DEMO"

// createStarknet makes the Starknet network, with its past, where it is not there yet.
func (d Demo) createStarknet(ctx context.Context) (err error) {
	a, store, err := dataDir(d.Data).createStarknet(ctx, demoStarknet, kv.Options{}, demoStarknetID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if a.Span() != nil {
		return nil
	}
	made := madeup.New(madeup.Default())
	past := []*starknet.Block{made.Next()}
	for uint64(len(past)) <= d.Blocks {
		past = append(past, made.Next())
	}
	return a.Append(ctx, past...)
}

// sequencer makes the blocks of the demo's Starknet network.
type sequencer struct {
	follower *ingest.Follower
	made     *madeup.Chain
}

// newSequencer goes on with the network where it is.
func newSequencer(n *starknetNetwork) (*sequencer, error) {
	head := n.follower.Tip().Standing().Head.Ref()
	s := &sequencer{follower: n.follower, made: madeup.New(madeup.Default())}
	for last := (chain.Ref{}); last != head; {
		if last = s.made.Next().Ref(); last.Number > head.Number {
			return nil, fmt.Errorf("block %s is not of the demo's chain", head)
		}
	}
	return s, nil
}

// run makes a block at each interval.
func (s *sequencer) run(ctx context.Context, interval time.Duration) error {
	return atIntervals(ctx, interval, func(ctx context.Context) error {
		block := s.made.Next()
		block.Timestamp = uint64(time.Now().Unix())
		if err := s.follower.Append(ctx, block); err != nil {
			return fmt.Errorf("demo's Starknet network: %w", err)
		}
		return nil
	})
}
