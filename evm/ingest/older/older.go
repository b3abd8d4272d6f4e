// Package older brings blocks before the first one of an archive from nodes.
//
//	block 999   the first one of the archive: its parent hash is known
//	headers     998 997 996 ... fetched in parallel, each must have the hash that its child names
//	            ... 743
//	blocks      743 744 745 ... fetched in parallel with their receipts, each is checked against
//	            ... 998         its header and written
//	block 743   is the first one of the archive
//
// Nodes are not trusted: each block is proven by the one after it. A node that fails, or sends
// something else, is asked again after a pause that grows, and others meanwhile. It is given up after
// several failures in a row, and at once if it is a node of another network. Memory holds a batch of
// headers and some ranges of blocks, and an interruption loses one batch at most.
package older

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/retry"

	"github.com/cenkalti/backoff/v5"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Node is a node to fetch blocks from, such as a [node.Client], which documents the methods.
// All methods are safe for concurrent use.
type Node interface {
	// Name identifies the node in errors and logs and contains no secrets.
	Name() string
	Identity(ctx context.Context) (chainID uint64, genesis common.Hash, err error)
	// Headers returns count headers of the node's chain.
	Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error)
	// Blocks returns 1 to count blocks of the node's chain.
	Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error)
	// Receipts returns the receipts of the first block, and of as many others.
	Receipts(ctx context.Context, blocks []common.Hash) ([]types.Receipts, error)
	// AccessLists returns the access list of the first block, and of as many others.
	AccessLists(ctx context.Context, blocks []common.Hash) ([][]byte, error)
}

// Pace holds sizes, intervals and time limits.
type Pace struct {
	Batch           uint64        // blocks that become visible together
	Step            time.Duration // time limit for a range of blocks, or of headers
	Retry, RetryMax time.Duration // first and maximum average wait before a node that failed is asked again
	Tries           int           // in a row, after which a node is given up
}

// DefaultPace is for nodes that others run, which may be restarted meanwhile.
func DefaultPace() Pace {
	return Pace{Batch: 1024, Step: time.Minute, Retry: time.Second, RetryMax: 30 * time.Second, Tries: 8}
}

// Source fetches the blocks before the first one of an archive.
type Source struct {
	archive  *archive.Archive
	executor *execute.Executor
	pace     Pace
	nodes    []*candidate // that are not given up
	start    uint64       // first block of the archive at the beginning
	arrived  atomic.Uint64

	transactions uint64 // in the blocks that were added
}

// candidate is a node.
type candidate struct {
	Node
	identified bool      // since it last failed: another one may be behind its URL then
	known      bool      // it was of this network once
	until      time.Time // not asked before; zero if it did not fail
	wait       *backoff.ExponentialBackOff
	failures   int // in a row
}

// New returns a source for an archive that no one else writes to.
func New(a *archive.Archive, e *execute.Executor, pace Pace, nodes ...Node) *Source {
	s := &Source{archive: a, executor: e, pace: pace, start: a.Extent().Blocks}
	for _, n := range nodes {
		s.nodes = append(s.nodes, &candidate{Node: n, wait: &backoff.ExponentialBackOff{
			InitialInterval: pace.Retry, MaxInterval: pace.RetryMax, Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor,
		}})
	}
	return s
}

// Progress returns how many blocks were added, including those of a batch that is not
// complete, and how many there are to add altogether.
func (s *Source) Progress() (added, total uint64) { return s.arrived.Load(), s.start }

// Transactions returns how many transactions the blocks have that were added. Run must have returned.
func (s *Source) Transactions() uint64 { return s.transactions }

// Run adds all blocks down to the genesis, which is always there.
func (s *Source) Run(ctx context.Context) error {
	for s.archive.Extent().Blocks > 1 {
		if err := s.addBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addBatch adds the last blocks before the first one from a node that has them.
func (s *Source) addBatch(ctx context.Context) error {
	for {
		from := slices.MinFunc(s.nodes, func(a, b *candidate) int { return a.until.Compare(b.until) })
		if err := retry.Sleep(ctx, time.Until(from.until)); err != nil {
			return err
		}
		err := s.addFrom(ctx, from)
		var fault *nodeError
		switch {
		case err == nil:
			from.wait.Reset()
			from.failures, from.until = 0, time.Time{}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &fault):
			return err
		}
		if err := s.failed(from, fmt.Errorf("node %s: %w", from.Name(), err)); err != nil {
			return err
		}
	}
}

// failed records an error of a node. It returns the error if no node is left.
func (s *Source) failed(from *candidate, err error) error {
	from.failures++
	from.identified = false
	// Of several servers behind one URL, one may be of another network for a time.
	if other := errors.Is(err, errOtherNetwork) && !from.known; other || from.failures >= s.pace.Tries {
		s.nodes = slices.DeleteFunc(s.nodes, func(c *candidate) bool { return c == from })
		if !other {
			err = fmt.Errorf("%w; given up after %d failures in a row", err, from.failures)
		}
		if len(s.nodes) == 0 {
			return err
		}
		slog.Warn("a node is not asked for older blocks again", "error", err)
		return nil
	}
	wait := from.wait.NextBackOff()
	from.until = time.Now().Add(wait)
	slog.Warn("no older blocks from a node; asking it again", "error", err, "failures", from.failures, "of", s.pace.Tries, "again_in", wait.Round(time.Millisecond))
	return nil
}

// errOtherNetwork means that a node is of another network.
var errOtherNetwork = errors.New("it is a node of another network")

// identify checks that a node is of the network of the archive.
func (s *Source) identify(ctx context.Context, c *candidate) error {
	if c.identified {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.pace.Step)
	defer cancel()
	id, first, err := c.Identity(ctx)
	if err != nil {
		return answered(err)
	}
	genesis, err := s.archive.Header(ctx, 0)
	if err != nil {
		return err
	}
	if want := s.archive.Genesis().Config.ChainID.Uint64(); id != want || first != genesis.Hash {
		return answered(fmt.Errorf("%w: its chain id is %d and its genesis %#x (want %d and %#x)", errOtherNetwork, id, first, want, genesis.Hash))
	}
	c.identified, c.known = true, true
	return nil
}

// addFrom adds the last blocks before the first one from a node.
func (s *Source) addFrom(ctx context.Context, from *candidate) error {
	if err := s.identify(ctx, from); err != nil {
		return err
	}
	first := s.archive.Extent().Blocks
	s.arrived.Store(s.start - first)
	held, err := s.archive.Header(ctx, first)
	if err != nil {
		return err
	}
	b := &batch{source: s, node: from, first: first - min(first-1, s.pace.Batch)}
	if err := b.climb(ctx, first, held.ParentHash); err != nil {
		return err
	}
	b.begin(ctx)
	defer b.close()
	transactions, err := ingest.AddOlder(ctx, s.archive, s.executor, b)
	s.transactions += transactions
	if check := (*execute.CheckError)(nil); errors.As(err, &check) {
		return answered(err) // the header is proven, so the body or the receipts are wrong
	}
	return err
}

// nodeError is a node's error, as opposed to our own.
type nodeError struct{ err error }

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// answered marks an error as a node's.
func answered(err error) error {
	if err == nil {
		return nil
	}
	return &nodeError{err}
}
