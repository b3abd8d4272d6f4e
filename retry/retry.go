// Package retry keeps tasks going that an error must not end, such as following a chain
// while the disk is full, and says why one makes no progress.
package retry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// How long a task waits after the first of several failures in a row, and at most, on
// average.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 10 * time.Second
)

// Stop is why a task makes no progress.
type Stop struct {
	Err   error     // the last error
	Since time.Time // of the first error after the last success
}

// Task is a task that is run again after each error. It may be used from many goroutines
// at once. A nil task is run once.
type Task struct {
	name string
	log  *slog.Logger

	mu   sync.Mutex
	stop *Stop                       // guarded by mu; nil while the task makes progress
	wait *backoff.ExponentialBackOff // guarded by mu
}

// New makes a task. Its name completes "cannot ...: trying again", such as "settle blocks".
func New(name string, log *slog.Logger) *Task {
	return &Task{name: name, log: log, wait: &backoff.ExponentialBackOff{
		InitialInterval: firstWait, MaxInterval: longestWait, Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor,
	}}
}

// Keep calls run until it returns without an error or ctx is done, and returns nil. After an
// error it waits before it calls run again, each time longer until run calls Succeeded. A nil
// task returns run's error.
func (t *Task) Keep(ctx context.Context, run func(context.Context) error) error {
	if t == nil {
		return run(ctx)
	}
	for {
		err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		timer := time.NewTimer(t.failed(err))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// failed records an error and returns how long to wait. It logs the first of several
// failures in a row, and those with another text than the one before.
func (t *Task) failed(err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := &Stop{Err: err, Since: time.Now()}
	if t.stop != nil {
		now.Since = t.stop.Since
	}
	if t.stop == nil || t.stop.Err.Error() != err.Error() {
		t.log.Error("cannot "+t.name+": trying again", "error", err)
	}
	t.stop = now
	return t.wait.NextBackOff()
}

// Succeeded says that the task makes progress, or has nothing to do.
func (t *Task) Succeeded() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		return
	}
	t.log.Info("can "+t.name+" again", "stopped_for", time.Since(t.stop.Since).Round(time.Millisecond))
	t.stop = nil
	t.wait.Reset()
}

// Stopped returns why the task makes no progress, nil if it does.
func (t *Task) Stopped() *Stop {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stop
}

// Sleep waits for a time, or returns the context's error when that ends before.
func Sleep(ctx context.Context, length time.Duration) error {
	if length <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Outlast returns a context that is done some time after ctx, for work that must be completed once
// it is begun, but not wait without end for a store that does not answer. cancel must be called.
func Outlast(ctx context.Context, by time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = Sleep(longer, by) // the work may be completed before
		end()
	})
	return longer, func() { stop(); end() }
}
