// Package ingest brings the blocks of a source into an archive: it verifies and
// executes them, checks every root, and settles them.
//
// The work is a pipeline of goroutines with bounded queues between them:
//
//	read | verify body, recover senders | execute | state root | settle
//
// Blocks are settled in order and only after all of their checks. The archive is its own
// checkpoint: however an import ends, the next one skips the settled blocks and continues
// after them.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"runtime"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/execute/tries"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// Source yields the blocks of a chain in ascending order.
type Source interface {
	// Next returns the next block, or io.EOF after the last. It may start
	// with the genesis and with blocks that the archive already has, and
	// may repeat blocks.
	Next() (*types.Block, error)
}

// Stopper is a source whose Next may block for a long time.
type Stopper interface {
	Source
	// Stop makes Next return: no more blocks are needed. It may be called during Next.
	Stop()
}

// ErrOtherChain means that the source has a block of another chain than the archive.
var ErrOtherChain = errors.New("the source is of another chain than the archive")

// ErrGap means that blocks are missing before those of the source.
var ErrGap = errors.New("blocks are missing before those of the source")

const (
	verifiedAhead = 32 // blocks that are verified ahead of execution
	executedAhead = 8  // blocks that are executed ahead of their roots
	rootedAhead   = 16 // blocks whose roots are known ahead of being settled
)

// Importer adds blocks to one archive. It runs one import at a time.
type Importer struct {
	// Processors, if set before Import, is the number of processors that run the
	// transactions of a block with an access list. 0: those that the other stages leave
	// free.
	Processors int

	archive  *archive.Archive
	executor *execute.Executor
	memory   int64 // of the newest state and its tries, in bytes
	latest   *latest
	tries    *tries.Tries // of the last block whose root is known
	recent   *ancestors
	rooted   *rootedBlock
	counts   counts
	busy     atomic.Int32 // goroutines at work, other than the executing one
	// settled, if not nil, is called with the last block after each group is settled.
	settled func(ctx context.Context, last chain.Ref) error
}

// Option changes how an importer works.
type Option func(*Importer)

// Memory sets how many bytes the importer keeps of the newest state and its tries; 0 means DefaultMemory.
func Memory(bytes int64) Option {
	return func(i *Importer) { i.memory = cmp.Or(bytes, DefaultMemory) }
}

// New makes an importer. If the archive is empty, New settles the genesis, which must
// include its accounts.
func New(ctx context.Context, a *archive.Archive, e *execute.Executor, genesis *core.Genesis, options ...Option) (*Importer, error) {
	if _, ok := a.Settled(); !ok {
		delta, err := execute.Genesis(ctx, genesis)
		if err != nil {
			return nil, err
		}
		if err := a.Append(ctx, delta); err != nil {
			return nil, err
		}
	}
	i := &Importer{archive: a, executor: e, memory: DefaultMemory, recent: newAncestors(a)}
	for _, option := range options {
		option(i)
	}
	s := sharesOf(i.memory)
	i.latest, i.tries = newLatest(a, s), tries.New(int(s.tries))
	if err := i.sync(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// Memory returns how many bytes the importer keeps of the newest state and its tries.
func (i *Importer) Memory() int64 { return i.memory }

// counts is the progress of an import.
type counts struct{ skipped, blocks, transactions, gas, head, kept atomic.Uint64 }

// Progress is the progress of an import.
type Progress struct {
	Skipped      uint64 // blocks that were already settled
	Blocks       uint64 // blocks that the import has settled
	Transactions uint64 // in these blocks
	Gas          uint64 // used by these blocks
	Head         uint64 // the last settled block
	Kept         uint64 // the last block that is known to be durable: it survives any crash
}

// Progress may be called while Import runs.
func (i *Importer) Progress() Progress {
	return Progress{
		Skipped: i.counts.skipped.Load(), Blocks: i.counts.blocks.Load(), Transactions: i.counts.transactions.Load(),
		Gas: i.counts.gas.Load(), Head: i.counts.head.Load(), Kept: i.counts.kept.Load(),
	}
}

// step is a block on its way through the pipeline, or the error that ends it.
type step struct {
	block    *types.Block
	verified chan error // receives the verdict on the body
	executed *execute.Executed
	delta    *evm.Delta
	err      error
}

// Import adds all blocks of a source. It stops at the first block that fails, and when
// ctx is done. The blocks before stay, and all settled blocks are durable when it returns,
// unless the store does not answer.
func (i *Importer) Import(ctx context.Context, source Source) error {
	if err := i.archive.Complete(ctx); err != nil {
		return err
	}
	head, _ := i.archive.Settled()
	i.counts.head.Store(head.Number)
	header, err := i.archive.Header(ctx, head.Number)
	if err != nil {
		return err
	}
	i.rooted = newRootedBlock(head.Number)

	// The stages' context ends when one of them fails. Only the first stage watches the
	// caller's, so that blocks in progress are finished, but not if the store does not answer.
	longer, cancel := retry.Outlast(ctx, stopTime)
	defer cancel()
	group, inner := errgroup.WithContext(longer)
	read := make(chan *step, verifiedAhead)
	verify := make(chan *step, verifiedAhead)
	executed := make(chan *step, executedAhead)
	rooted := make(chan *step, rootedAhead)
	if waiting, ok := source.(Stopper); ok {
		defer context.AfterFunc(inner, waiting.Stop)()
	}
	group.Go(func() error {
		defer close(read)
		defer close(verify)
		i.read(ctx, inner, source, head, read, verify)
		return nil
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error { i.verify(verify); return nil })
	}
	group.Go(func() error { defer close(executed); i.execute(inner, header, read, executed); return nil })
	group.Go(func() error { defer close(rooted); i.root(inner, header.Root, executed, rooted); return nil })
	group.Go(func() error { return i.settle(ctx, rooted) })
	if err = group.Wait(); err == nil {
		err = longer.Err() // blocks in progress were given up
	}
	if err != nil {
		// What has been executed but not settled would be taken for state of the chain.
		i.latest, i.recent = newLatest(i.archive, sharesOf(i.memory)), newAncestors(i.archive)
	}
	return err
}

// send passes a step on, or returns false if the pipeline has ended.
func send(ctx context.Context, to chan<- *step, s *step) bool {
	select {
	case to <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// read reads the source, skips settled blocks, and passes every other block to the
// verifying stage and, in order, to the executing one. It stops when ctx, the caller's, is done;
// inner is the stages' own.
func (i *Importer) read(ctx, inner context.Context, source Source, head chain.Ref, out, verify chan<- *step) {
	for {
		block, err := source.Next()
		if err == io.EOF {
			return
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && block.NumberU64() <= head.Number {
			if err = i.skip(inner, block); err == nil {
				continue
			}
		}
		if err == nil && (block.NumberU64() != head.Number+1 || block.ParentHash() != head.Hash) {
			err = notNext(head, block)
		}
		if err != nil {
			send(inner, out, &step{err: err})
			return
		}
		head = chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
		s := &step{block: block, verified: make(chan error, 1)}
		if !send(inner, verify, s) || !send(inner, out, s) {
			return
		}
	}
}

// skip checks that a block is already settled, or on its way.
func (i *Importer) skip(ctx context.Context, block *types.Block) error {
	if err := i.awaitSettled(ctx, block.NumberU64()); err != nil {
		return err
	}
	header, err := i.archive.Header(ctx, block.NumberU64())
	if pruned := (*archive.Pruned)(nil); errors.As(err, &pruned) {
		i.counts.skipped.Add(1)
		return nil // if the source is of this chain, the first block that is stored says
	}
	if err != nil {
		return err
	}
	if header.Hash != block.Hash() {
		return fmt.Errorf("%w: block %d is %#x in the source, %#x in the archive", ErrOtherChain, block.NumberU64(), block.Hash(), header.Hash)
	}
	i.counts.skipped.Add(1)
	return nil
}

func notNext(head chain.Ref, block *types.Block) error {
	if block.NumberU64() == head.Number+1 {
		return fmt.Errorf("%w: block %d has the parent %#x, block %d is %#x", ErrOtherChain, block.NumberU64(), block.ParentHash(), head.Number, head.Hash)
	}
	return fmt.Errorf("%w: block %d comes after block %d", ErrGap, block.NumberU64(), head.Number)
}

func (i *Importer) verify(in <-chan *step) {
	for s := range in {
		i.busy.Add(1)
		s.verified <- i.executor.VerifyBody(s.block)
		i.busy.Add(-1)
	}
}

// execute runs the blocks in order, each on the state after the previous one.
func (i *Importer) execute(ctx context.Context, head *archive.Header, in <-chan *step, out chan<- *step) {
	parent := execute.Parent{Header: head.Header, State: i.latest, Ancestors: i.recent, TotalDifficulty: head.TotalDifficulty}
	for s := range in {
		if s.err == nil {
			s.err = i.executeOne(ctx, parent, s)
		}
		failed := s.err != nil
		if !failed {
			parent.Header = s.block.Header()
			parent.TotalDifficulty = new(big.Int).Add(parent.TotalDifficulty, parent.Header.Difficulty)
		}
		if !send(ctx, out, s) || failed { // once sent, s is the next stage's
			drain(in)
			return
		}
	}
}

func (i *Importer) executeOne(ctx context.Context, parent execute.Parent, s *step) error {
	select {
	case err := <-s.verified:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if i.executor.RootInline(s.block.Header()) {
		// Its tries are read and written during execution, so the parent's must be there.
		if err := i.rooted.wait(ctx, parent.Header.Number.Uint64()); err != nil {
			return err
		}
	}
	var err error
	s.executed, err = i.executor.Execute(ctx, parent, s.block, i.processors())
	if err != nil {
		return err
	}
	i.latest.executed(s.executed)
	i.recent.add(s.executed.Block)
	return nil
}

// processors is the number of processors for the execution of a block. Running its
// transactions in parallel takes more processor time than running them in order, so it
// only helps if processors would be idle otherwise.
func (i *Importer) processors() int {
	if i.Processors > 0 {
		return i.Processors
	}
	return max(1, runtime.GOMAXPROCS(0)-int(i.busy.Load()))
}

// root checks the state roots.
func (i *Importer) root(ctx context.Context, parent common.Hash, in <-chan *step, out chan<- *step) {
	for s := range in {
		if s.err == nil {
			i.busy.Add(1)
			s.delta, s.err = i.executor.RootKeeping(ctx, i.tries, i.latest, parent, s.executed)
			i.busy.Add(-1)
		}
		if s.err == nil {
			i.latest.rooted(s.delta, i.executor.RootInline(s.block.Header()))
			i.rooted.set(s.block.NumberU64())
			parent = s.block.Root()
		}
		failed := s.err != nil
		if !send(ctx, out, s) || failed {
			i.rooted.fail()
			drain(in)
			return
		}
	}
}

// drain discards the steps of the previous stage until it ends.
func drain(in <-chan *step) {
	for range in {
	}
}
