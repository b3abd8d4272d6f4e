package ingest

import (
	"context"
	"errors"
	"time"

	"ashlar/evm"
	"ashlar/retry"
)

const (
	groupGas    = 200_000_000      // a group of blocks that is settled together ends above this
	groupBlocks = 128              // or at this many,
	groupWait   = time.Second      // or when this time has passed since it began
	syncEvery   = 20 * time.Second // how much work a crash can cost
)

// settle writes the blocks to the archive in groups, and returns the error that ended the import.
// When ctx is done, what has come is still written, if the store answers.
func (i *Importer) settle(ctx context.Context, in <-chan *step) error {
	var group []*evm.Delta
	var gas uint64
	synced := time.Now()
	write := func(do func(context.Context) error) error {
		longer, cancel := retry.Outlast(ctx, stopTime)
		defer cancel()
		return do(longer)
	}
	flush := func() error {
		if err := write(func(ctx context.Context) error { return i.settleGroup(ctx, group) }); err != nil {
			return err
		}
		group, gas = group[:0], 0
		return nil
	}
	finish := func() error {
		if err := flush(); err != nil {
			return err
		}
		return write(i.sync)
	}
	var waited <-chan time.Time // while there is a group
	for {
		select {
		case s, ok := <-in:
			switch {
			case !ok:
				return finish()
			case s.err != nil:
				return errors.Join(s.err, finish())
			case len(group) == 0:
				waited = time.After(groupWait)
			}
			if group, gas = append(group, s.delta), gas+s.block.GasUsed(); gas < groupGas && len(group) < groupBlocks {
				continue
			}
		case <-waited:
		}
		waited = nil
		if err := flush(); err != nil {
			return err
		}
		if time.Since(synced) > syncEvery {
			if err := write(i.sync); err != nil {
				return err
			}
			synced = time.Now()
		}
	}
}

// sync makes all that is settled durable.
func (i *Importer) sync(ctx context.Context) error {
	head, _ := i.archive.Settled()
	if err := i.archive.Sync(ctx); err != nil {
		return err
	}
	i.counts.kept.Store(head.Number)
	return nil
}

func (i *Importer) settleGroup(ctx context.Context, group []*evm.Delta) error {
	if len(group) == 0 {
		return nil
	}
	i.busy.Add(1)
	err := i.archive.Append(ctx, group...)
	i.busy.Add(-1)
	if err != nil {
		return err
	}
	last := group[len(group)-1].Block.NumberU64()
	i.latest.settle(last)
	if i.settled != nil {
		if err := i.settled(ctx, group[len(group)-1].Ref()); err != nil {
			return err
		}
	}
	for _, delta := range group {
		i.counts.blocks.Add(1)
		i.counts.transactions.Add(uint64(len(delta.Block.Transactions())))
		i.counts.gas.Add(delta.Block.GasUsed())
	}
	i.counts.head.Store(last)
	return nil
}
