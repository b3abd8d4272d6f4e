package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/family"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
)

// origin is where the state of a new network comes from, and blocks around it.
type origin interface {
	ingest.StateSource
	// State returns the first block with state.
	State() chain.Ref
	// Contents names the accounts, slots and codes: see [archive.Beginning].
	Contents() common.Hash
	// Prepare checks what can be checked before anything is stored. It returns the total
	// difficulty of the block with state. It is called before the methods of
	// [ingest.StateSource].
	Prepare(ctx context.Context, show family.Show) (*big.Int, error)
	// Continue imports the blocks after the first one with state that the origin has.
	Continue(ctx context.Context, i *imported, show family.Show) error
	Close() error
}

// settings are what the operator says about a new network, besides where its state comes from.
type settings struct {
	genesis *core.Genesis
	traces  *bool          // whether it has a trace index; nil: it has one
	older   family.Sources // nodes that have the blocks before its first one
}

// started is an import that begins with a state instead of the genesis. It implements
// [family.Import].
type started struct {
	settings
	store  kv.Store
	origin origin
	memory family.ImportMemory
	begun  atomic.Bool // there is something in the store to continue with

	progress ingest.StartProgress
	rest     atomic.Pointer[imported] // once the state is complete
}

// begin opens a network that begins with the state that from names, or continues with it.
func begin(ctx context.Context, p family.Place, set settings, from string) (family.Import, error) {
	dir, ok := strings.CutPrefix(from, "geth:")
	if !ok {
		return nil, family.Usage(fmt.Errorf("unknown --%s %q (want geth:DIR)", flagState, from))
	}
	source, err := openGeth(dir, set.genesis)
	if err != nil {
		return nil, err
	}
	return beginWith(ctx, p, set, source)
}

// beginWith opens a network that begins with the state of an origin, or continues with it.
// It closes the origin if it fails.
func beginWith(ctx context.Context, p family.Place, set settings, from origin) (family.Import, error) {
	s := &started{settings: set, origin: from, memory: p.Memory}
	o := s.memory.Options()
	at, complete := archive.Beginning{Ref: from.State(), Source: from.Contents()}, false
	o.Accept = func(r kv.Reader) (err error) {
		complete, err = hasState(ctx, r, at.Ref)
		if complete || err != nil {
			return err
		}
		return archive.AcceptStart(ctx, r, set.genesis, &at)
	}
	var err error
	if s.store, err = p.Open(o); err != nil {
		return nil, errors.Join(err, from.Close())
	}
	if complete {
		if err := s.complete(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// hasState reports whether a store has the state of a block as its first.
func hasState(ctx context.Context, r kv.Reader, at chain.Ref) (bool, error) {
	first, ok, err := archive.FirstState(ctx, r)
	return ok && first == at, err
}

// Run implements [family.Import].
func (s *started) Run(ctx context.Context, files []string, show family.Show) error {
	if s.rest.Load() == nil {
		if err := s.load(ctx, show); err != nil {
			return err
		}
		if err := s.complete(ctx); err != nil {
			return err
		}
	}
	if err := s.origin.Continue(ctx, s.rest.Load(), show); err != nil || len(files) == 0 && len(s.older) == 0 {
		return err
	}
	return s.rest.Load().Run(ctx, files, show)
}

// load writes the state.
func (s *started) load(ctx context.Context, show family.Show) error {
	var features []archive.Feature
	if s.traces == nil || *s.traces {
		features = append(features, archive.TraceIndex)
	}
	executor, err := execute.New(s.genesis.Config)
	if err != nil {
		return err
	}
	at := s.origin.State()
	total, err := s.origin.Prepare(ctx, show)
	if err != nil {
		return err
	}
	start, err := archive.Begin(ctx, s.store, s.genesis, archive.Beginning{Ref: at, Source: s.origin.Contents()}, features...)
	if err != nil {
		return err
	}
	s.begun.Store(true)
	const parts = 1 << 32
	show.Begin(fmt.Sprintf("state of block %d", at.Number), func() (read, total int64) {
		return int64(s.progress.Through.Load() >> 32), parts
	})
	_, err = ingest.Start(ctx, ingest.StartConfig{
		Start: start, Executor: executor, Genesis: s.genesis, Source: s.origin, TotalDifficulty: total, Progress: &s.progress,
	})
	if errors.Is(err, ingest.ErrOtherState) {
		s.begun.Store(false)
	}
	if err == nil {
		slog.Info("state complete", "block", at.Number, "accounts", s.progress.Accounts.Load(), "slots", s.progress.Slots.Load())
	}
	return err
}

// complete opens the archive, whose first state is complete, to import further blocks.
func (s *started) complete(ctx context.Context) error {
	a, err := archive.Create(ctx, s.store, s.genesis)
	if err != nil {
		return err
	}
	if err := checkTraceIndex(a, s.traces); err != nil {
		return err
	}
	executor, err := execute.New(a.Genesis().Config, execute.RecordTraces(a.HasTraces()))
	if err != nil {
		return err
	}
	importer, err := ingest.New(ctx, a, executor, s.genesis, ingest.Memory(s.memory.State))
	if err != nil {
		return err
	}
	s.rest.Store(&imported{store: s.store, archive: a, importer: importer, olderNodes: s.older})
	return nil
}

// Progress implements [family.Import].
func (s *started) Progress() family.Progress {
	rest := s.rest.Load()
	if rest == nil {
		return family.Progress{
			Begun: s.begun.Load(),
			Rates: []family.Rate{{Unit: "accounts/s", Count: float64(s.progress.Accounts.Load())}, {Unit: "slots/s", Count: float64(s.progress.Slots.Load())}},
		}
	}
	done := rest.Progress()
	done.Blocks++ // the first one with state
	return done
}

// Compact implements [family.Import].
func (s *started) Compact(ctx context.Context) error { return s.store.Compact(ctx) }

// Close implements [family.Import].
func (s *started) Close() error { return errors.Join(s.store.Close(), s.origin.Close()) }
