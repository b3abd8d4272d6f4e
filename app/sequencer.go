package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/chain/rollup"
	ingest "ashlar/ingest/rollup"
	"ashlar/kv/pebble"
	"ashlar/source/rollup/madeup"
)

// demoRollupID is the ID of the chain of the demo's rollup network.
const demoRollupID = "SN_DEMO"

// createRollup makes the rollup network, with its past, where it is not there yet.
func (d Demo) createRollup(ctx context.Context) (err error) {
	a, store, err := dataDir(d.Data).createRollup(ctx, demoRollup, pebble.Options{}, demoRollupID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if a.Span() != nil {
		return nil
	}
	made := madeup.New(madeup.Default())
	past := []*rollup.Block{made.Next()}
	for uint64(len(past)) <= d.Blocks {
		past = append(past, made.Next())
	}
	return a.Append(ctx, past...)
}

// sequencer makes the blocks of the demo's rollup network.
type sequencer struct {
	follower *ingest.Follower
	made     *madeup.Chain
}

// newSequencer goes on with the network where it is.
func newSequencer(n *rollupNetwork) (*sequencer, error) {
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
			return fmt.Errorf("demo's rollup network: %w", err)
		}
		return nil
	})
}
