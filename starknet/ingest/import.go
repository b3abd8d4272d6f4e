// Package ingest imports the blocks of a Starknet network into its archive, from files or one
// by one while following a node's chain. It rejects blocks whose hash does not match their
// contents, as far as that can be verified, or whose parent is not the previous block.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"ashlar/retry"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
)

// Source provides the blocks of a chain in ascending order.
type Source interface {
	// Next returns the next block, or io.EOF after the last. The archive may already have the
	// block.
	Next() (*starknet.Block, error)
}

var (
	// ErrOtherChain means that the source and the archive have different chains.
	ErrOtherChain = errors.New("the source is of another chain than the archive")
	// ErrGap means that the source skips blocks.
	ErrGap = errors.New("blocks are missing before those of the source")
)

// BlockError is an error about a block of a source.
type BlockError struct {
	Number uint64
	Err    error
}

func (e *BlockError) Error() string { return fmt.Sprintf("block %d: %v", e.Number, e.Err) }

func (e *BlockError) Unwrap() error { return e.Err }

const (
	groupEvents = 50_000           // a group of blocks settled together ends above this many events
	groupBlocks = 256              // or at this many blocks
	syncEvery   = 20 * time.Second // maximum work lost in a crash
)

// Importer imports blocks into one archive. Import must not be called concurrently.
type Importer struct {
	archive *archive.Archive
	hashes  *blockhash.Checker
	group   []*starknet.Block
	events  int // of the group
	synced  time.Time
	counts  counts
}

// New returns an Importer.
func New(a *archive.Archive) *Importer {
	return &Importer{archive: a, hashes: blockhash.New(starknet.FeltOfText(a.ChainID()))}
}

// counts is the state of a Progress.
type counts struct{ skipped, blocks, transactions, events, unchecked, head, kept atomic.Uint64 }

// Progress is the progress of an import.
type Progress struct {
	Skipped      uint64 // blocks that were already settled
	Blocks       uint64 // settled by the import
	Transactions uint64 // in Blocks
	Events       uint64 // in Blocks
	Unchecked    uint64 // those of Blocks whose hash could not be verified
	Head         uint64 // last settled block
	Kept         uint64 // last durable block
}

// Progress returns the progress so far. It may be called during Import.
func (i *Importer) Progress() Progress {
	return Progress{
		Skipped: i.counts.skipped.Load(), Blocks: i.counts.blocks.Load(), Transactions: i.counts.transactions.Load(),
		Events: i.counts.events.Load(), Unchecked: i.counts.unchecked.Load(), Head: i.counts.head.Load(), Kept: i.counts.kept.Load(),
	}
}

// Import imports all blocks of a source. It stops at the first block that cannot be imported,
// and when ctx is done. Earlier blocks remain, and everything settled is durable when it
// returns, unless the store does not answer.
func (i *Importer) Import(ctx context.Context, source Source) error {
	if err := i.archive.Complete(ctx); err != nil {
		return err
	}
	if span := i.archive.Span(); span != nil {
		i.counts.head.Store(span.Last.Number)
		i.counts.kept.Store(span.Last.Number)
	}
	i.synced = time.Now()
	err := i.read(ctx, source)
	// Settle what has been read, unless the store does not answer.
	longer, cancel := retry.Outlast(ctx, stopTime)
	defer cancel()
	err = errors.Join(err, i.settle(longer))
	return errors.Join(err, i.sync(longer))
}

// sync makes the settled blocks durable.
func (i *Importer) sync(ctx context.Context) error {
	head := i.counts.head.Load()
	if err := i.archive.Sync(ctx); err != nil {
		return err
	}
	i.synced = time.Now()
	i.counts.kept.Store(head)
	return nil
}

// read reads blocks and settles full groups. It leaves the last group to the caller.
func (i *Importer) read(ctx context.Context, source Source) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		block, err := source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		known, err := i.known(ctx, block)
		if err == nil && !known {
			err = i.check(block)
		}
		switch {
		case err != nil:
			return &BlockError{Number: block.Number, Err: err}
		case known:
			i.counts.skipped.Add(1)
		default:
			if err := i.take(ctx, block); err != nil {
				return err
			}
		}
	}
}

// known reports whether a block is already settled. It is an error if the archive has a
// different block with the number, or begins after it.
func (i *Importer) known(ctx context.Context, block *starknet.Block) (bool, error) {
	span := i.archive.Span()
	if span == nil || block.Number > span.Last.Number {
		return false, nil
	}
	header, err := i.archive.Settled(span).Header(ctx, block.Number)
	if err == nil && header.Hash != block.Hash {
		err = fmt.Errorf("%w: the hash is %s, expected %s", ErrOtherChain, block.Hash, header.Hash)
	}
	return err == nil, err
}

// check validates the next block.
func (i *Importer) check(block *starknet.Block) error {
	if err := i.follows(block); err != nil {
		return err
	}
	verdict, err := i.hashes.Check(block)
	if err == nil && verdict != blockhash.Confirmed {
		i.counts.unchecked.Add(1)
	}
	return err
}

// take adds a block to the group.
func (i *Importer) take(ctx context.Context, block *starknet.Block) error {
	i.group = append(i.group, block)
	i.events += block.EventCount()
	if len(i.group) == groupBlocks || i.events > groupEvents {
		return i.settle(ctx)
	}
	return nil
}

// follows checks that a block is the child of the previous one.
func (i *Importer) follows(block *starknet.Block) error {
	var last *starknet.Header
	if n := len(i.group); n > 0 {
		last = &i.group[n-1].Header
	} else if span := i.archive.Span(); span != nil {
		last = &starknet.Header{Number: span.Last.Number, Hash: starknet.Felt(span.Last.Hash)}
	}
	switch {
	case last == nil:
		return nil
	case block.Number != last.Number+1:
		return fmt.Errorf("%w: the previous block is %d", ErrGap, last.Number)
	case block.Parent != last.Hash:
		return fmt.Errorf("%w: the parent is %s, expected %s, the hash of block %d", ErrOtherChain, block.Parent, last.Hash, last.Number)
	}
	return nil
}

// settle settles the group.
func (i *Importer) settle(ctx context.Context) error {
	group := i.group
	if len(group) == 0 {
		return nil
	}
	i.group, i.events = nil, 0
	if err := i.archive.Append(ctx, group...); err != nil {
		return err
	}
	for _, block := range group {
		i.counts.transactions.Add(uint64(len(block.Transactions)))
		i.counts.events.Add(uint64(block.EventCount()))
	}
	i.counts.blocks.Add(uint64(len(group)))
	i.counts.head.Store(group[len(group)-1].Number)
	if time.Since(i.synced) > syncEvery {
		return i.sync(ctx)
	}
	return nil
}
