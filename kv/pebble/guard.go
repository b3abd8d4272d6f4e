package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"syscall"

	"ashlar/kv"
)

// nameFull adds [kv.ErrFull] to an error that means it, a used up quota included.
func nameFull(err error) error {
	if (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && !errors.Is(err, kv.ErrFull) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return err
}

// guard turns all that can go wrong in the background into one thing: the store
// has failed. Everyone who waits is woken, and from then on every write returns
// the cause. Reads go on. Only a new process can write again, after Pebble's
// recovery on opening.
//
// It has to, because what is on disk is not known after a change of a log or
// manifest failed, and because Pebble would end the process or try again for
// ever. See disk for how its goroutines are held.
type guard struct {
	log    *slog.Logger
	failed chan struct{} // closed by the first failure
	once   sync.Once
	cause  error // set before failed is closed
}

func newGuard(log *slog.Logger) *guard {
	return &guard{log: log, failed: make(chan struct{})}
}

// err is what made the store fail, or nil.
func (g *guard) err() error {
	select {
	case <-g.failed:
		return g.cause
	default:
		return nil
	}
}

func (g *guard) fail(cause error) {
	g.once.Do(func() {
		cause = nameFull(cause)
		g.cause = fmt.Errorf("%w (%w)", cause, kv.ErrFailed)
		close(g.failed)
		g.log.Error("store failed; reads go on, writes are refused until the process is started again", "err", cause)
	})
}

// run calls op, which may reach Fatalf or wait for a flush, on a goroutine of its
// own, and returns op's error, or the failure as soon as there is one. In
// that case alone op may still be waiting within Pebble when run returns.
func (g *guard) run(op func() error) error {
	if err := g.err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := errors.New("stopped by a failure")
		defer func() {
			if p := recover(); p != nil { // Pebble's way to report a broken log
				err = fmt.Errorf("%v", p)
				g.fail(err)
			}
			done <- err
		}()
		err = op()
	}()
	select {
	case err := <-done:
		if failure := g.err(); failure != nil {
			return failure
		}
		return err
	case <-g.failed:
		return g.cause
	}
}

// background takes an error of a flush, a compaction or another background job.
// Pebble calls it on that job's goroutine and would begin the job again.
func (g *guard) background(err error) {
	g.fail(err)
	runtime.Goexit()
}

// Infof implements Pebble's Logger.
func (g *guard) Infof(format string, args ...any) {
	if g.log.Enabled(context.Background(), slog.LevelDebug) {
		g.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements Pebble's Logger.
func (g *guard) Errorf(format string, args ...any) {
	g.log.Warn(fmt.Sprintf(format, args...))
}

// Fatalf implements Pebble's Logger. It does not return; its goroutine ends.
func (g *guard) Fatalf(format string, args ...any) {
	g.fail(fmt.Errorf(format, args...))
	runtime.Goexit()
}
