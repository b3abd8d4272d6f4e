package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/source/geth"
	"ashlar/family"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
)

// started is an import that begins with the state of another node. It implements
// [family.Import].
type started struct {
	store   kv.Store
	genesis *core.Genesis
	traces  *bool
	source  *geth.Dir
	begun   atomic.Bool // there is something in the store to continue with

	progress ingest.StartProgress
	rest     atomic.Pointer[imported] // once the state is complete
}

// begin opens a network that begins with the state that from names, or continues with it.
func begin(ctx context.Context, p family.Place, o kv.Options, genesis *core.Genesis, traces *bool, from string) (family.Import, error) {
	dir, ok := strings.CutPrefix(from, "geth:")
	if !ok {
		return nil, fmt.Errorf("unknown --%s %q (want geth:DIR)", flagState, from)
	}
	source, err := geth.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &started{genesis: genesis, traces: traces, source: source}
	if want := genesis.ToBlock().Hash(); source.Genesis() != want {
		return nil, errors.Join(fmt.Errorf("%s: its genesis is %#x, expected %#x", dir, source.Genesis(), want), source.Close())
	}
	if source.Head().Number.Sign() == 0 {
		return nil, errors.Join(fmt.Errorf("%s: it has no state but that of the genesis, its head is block %d (want a geth that was stopped by SIGINT or SIGTERM)", dir, source.Last()), source.Close())
	}
	at := s.at()
	complete := false
	o.Accept = func(r kv.Reader) (err error) {
		complete, err = hasState(ctx, r, at)
		if complete || err != nil {
			return err
		}
		return archive.AcceptStart(ctx, r, genesis, &at)
	}
	if s.store, err = p.Open(o); err != nil {
		return nil, errors.Join(err, source.Close())
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

func (s *started) at() chain.Ref {
	head := s.source.Head()
	return chain.Ref{Number: head.Number.Uint64(), Hash: head.Hash()}
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
	if len(files) == 0 {
		return nil
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
	at := s.at()
	if last := s.source.Last(); last > at.Number {
		slog.Warn("geth has no state of its head", "head", last, "state", at.Number)
	}
	total, err := s.source.TotalDifficulty(ctx, s.showHeaders(show, at.Number))
	if err != nil {
		return err
	}
	start, err := archive.Begin(ctx, s.store, s.genesis, at, features...)
	if err != nil {
		return err
	}
	s.begun.Store(true)
	const parts = 1 << 32
	show.Begin(fmt.Sprintf("state of block %d", at.Number), func() (read, total int64) {
		return int64(s.progress.Through.Load() >> 32), parts
	})
	_, err = ingest.Start(ctx, start, executor, s.genesis, s.source, total, &s.progress)
	if errors.Is(err, ingest.ErrOtherState) {
		s.begun.Store(false)
	}
	if err == nil {
		slog.Info("state complete", "block", at.Number, "accounts", s.progress.Accounts.Load(), "slots", s.progress.Slots.Load())
	}
	return err
}

// showHeaders shows the progress of following the headers down from a block, and returns
// what to call with their numbers.
func (s *started) showHeaders(show family.Show, from uint64) func(uint64) {
	var at atomic.Uint64
	at.Store(from)
	show.Begin("headers", func() (read, total int64) { return int64(from - at.Load()), int64(from) })
	return at.Store
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
	executor, err := execute.New(s.genesis.Config, execute.RecordTraces(a.HasTraces()))
	if err != nil {
		return err
	}
	importer, err := ingest.New(ctx, a, executor, s.genesis)
	if err != nil {
		return err
	}
	s.rest.Store(&imported{store: s.store, archive: a, importer: importer})
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
func (s *started) Close() error { return errors.Join(s.store.Close(), s.source.Close()) }
