// Package window keeps an archive to its last blocks: it removes older states, and older
// blocks with their receipts and logs, in the background.
//
// The order of the writes, each durable before the next:
//
//	first = later     from here on nothing reads what is older
//	...               a pause, for requests that have begun
//	...               rows are removed, piece by piece
//	removed = first   done
//
// A crash anywhere leaves an archive that is right, with some rows that nothing reads; the
// next run removes them.
//
// Of an account, a slot or a trie node, the newest version at or below the first block with
// state stays, whatever its age, unless it is a deletion:
//
//	first block with state          |
//	versions          1     2     3     4    5
//	stay                          3     4    5
//
// If the version that stays is a difference of a branch, it is stored whole instead. A store
// that does not write batches at once keeps the rows that it is a difference from, at most
// seven, so that no reader combines old and new ones.
package window

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
	"ashlar/retry"
)

// Options change how much is removed at once. The zero value is for tests.
type Options struct {
	// Ancestors are blocks before the first one with state that executing it needs.
	Ancestors uint64
	// Steps is the share of a window by which it is moved at once: 10 for a tenth. Moving it
	// means reading every table of the state.
	Steps uint64
	// Grace is the time between moving the window and removing, so that few requests that have
	// begun are refused. None of them is answered wrongly: all check the window at the end.
	Grace time.Duration
	// Work is how long the removal works between two rests, Rest how much longer it rests, so
	// that requests and blocks are not slowed down. 0: it does not rest.
	Work time.Duration
	Rest int
	Log  *slog.Logger
	// Progress shows how far a removal is; may be nil.
	Progress *audit.Progress
}

// DefaultOptions returns the options of a service.
func DefaultOptions(log *slog.Logger) Options {
	return Options{Ancestors: 256, Steps: 10, Grace: time.Minute, Work: 50 * time.Millisecond, Rest: 3, Log: log}
}

// Remover removes what is older than a window. Run and Move belong to one goroutine.
type Remover struct {
	Options
	archive *archive.Archive
	store   kv.Store
	window  retention.Window
	removed atomic.Uint64
	under   atomic.Bool
}

// New returns a remover for an archive and its store, to which this process writes.
func New(a *archive.Archive, store kv.Store, w retention.Window, o Options) *Remover {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Remover{Options: o, archive: a, store: store, window: w}
}

// Rows returns how many rows were removed since the start.
func (r *Remover) Rows() uint64 { return r.removed.Load() }

// Removing reports whether rows are being removed.
func (r *Remover) Removing() bool { return r.under.Load() }

// lookEvery is the time between two looks at the settled block.
const lookEvery = 5 * time.Second

// Run keeps the window until ctx is done. It calls succeeded after each look that found
// nothing to do or was completed.
func (r *Remover) Run(ctx context.Context, succeeded func()) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := r.Move(ctx); err != nil {
			return err
		}
		succeeded()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Move moves the window if it is time, and removes what is older. It also completes a removal
// that was interrupted.
func (r *Remover) Move(ctx context.Context) error {
	now := r.archive.Extent()
	removed, there, err := r.archive.Removed(ctx)
	if err != nil {
		return err
	}
	unfinished := there && removed.Earliest(now) != now
	next := r.next(now)
	if next != now {
		if err := r.archive.SetFirst(ctx, next); err != nil {
			return err
		}
		r.Log.Info("moved the window", "first", next.Blocks, "first_state", next.State, "first_proof", next.Tries)
	} else if !unfinished {
		return nil
	}
	if removed, _, err = r.archive.Removed(ctx); err != nil {
		return err
	}
	r.under.Store(true)
	defer r.under.Store(false)
	if err := r.await(ctx); err != nil {
		return err
	}
	began, before := time.Now(), r.removed.Load()
	if err := r.remove(ctx, removed, next); err != nil {
		return fmt.Errorf("remove older history: %w", err)
	}
	if err := r.archive.SetRemoved(ctx, next); err != nil {
		return err
	}
	r.Log.Info("removed what is older than the window", "rows", r.removed.Load()-before, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// next returns where the history should begin.
func (r *Remover) next(now archive.Extent) archive.Extent {
	settled, _ := r.archive.Settled()
	next := now
	if first := firstOf(settled.Number, r.window.State); first > now.State && first-now.State >= r.step(r.window.State) {
		next.State = first
	}
	next.Tries = max(next.Tries, next.State)
	if first := firstOf(settled.Number, r.window.Proofs); first > next.Tries && first-next.Tries >= r.step(r.window.Proofs) {
		next.Tries = first
	}
	first := firstOf(settled.Number, r.window.History)
	first = min(first, next.State-min(next.State, r.Ancestors))
	if epoch := evm.CliqueEpoch(r.archive.Genesis().Config); epoch > 0 {
		first -= first % epoch // a checkpoint, from which the signers of later blocks follow
	}
	if first > now.Blocks && first-now.Blocks >= r.step(r.window.History) {
		next.Blocks = first
	}
	return next
}

func firstOf(settled uint64, window retention.Span) uint64 {
	if window == 0 || settled < uint64(window) {
		return 0
	}
	return settled - uint64(window) + 1
}

func (r *Remover) step(window retention.Span) uint64 {
	if r.Steps == 0 {
		return 1
	}
	return max(1, uint64(window)/r.Steps)
}

// await waits until no request uses what is to be removed. A reader in another process
// notices the window with the next settled block at the latest.
func (r *Remover) await(ctx context.Context) error {
	if _, ok := r.store.(kv.Leased); ok {
		at, _ := r.archive.Settled()
		for {
			if now, _ := r.archive.Settled(); now != at {
				break
			}
			if err := retry.Sleep(ctx, lookEvery); err != nil {
				return err
			}
		}
	}
	return retry.Sleep(ctx, r.Grace)
}
