package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/retry"
)

// A task runs again after errors, is stopped since the first, and goes on after a success.
func TestKeep(t *testing.T) {
	cause := errors.New("broken")
	task := retry.New("do it", slog.New(slog.DiscardHandler))
	runs := 0
	var since []retry.Stop
	err := task.Keep(t.Context(), func(context.Context) error {
		runs++
		if stopped := task.Stopped(); stopped != nil {
			since = append(since, *stopped)
		}
		if runs < 3 {
			return cause
		}
		task.Succeeded()
		if task.Stopped() != nil {
			t.Error("stopped after a success")
		}
		return nil
	})
	if err != nil || runs != 3 || len(since) != 2 || since[0] != since[1] || since[0].Err != cause || since[0].Since.IsZero() {
		t.Errorf("%d runs, %v, stopped: %v", runs, err, since)
	}
}

// TestWaits: a task waits longer after each failure in a row, up to a bound, and as little as at first after
// it made progress.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := retry.New("do it", slog.New(slog.DiscardHandler))
		const inARow = 10
		var began []time.Time
		_ = task.Keep(t.Context(), func(context.Context) error {
			began = append(began, time.Now())
			switch len(began) {
			case inARow:
				task.Succeeded()
			case inARow + 2:
				return nil
			}
			return errors.New("broken")
		})
		for i := 1; i < len(began); i++ {
			waited := began[i].Sub(began[i-1])
			failures := i
			if i >= inARow {
				failures = i - inARow + 1
			}
			most := min(500*time.Millisecond<<(failures-1), 10*time.Second) // on average
			if waited < most/2 || waited > most*3/2 {
				t.Errorf("waited %v after %d failures in a row, want about %v", waited, failures, most)
			}
		}
	})
}

// TestLog: the first of several failures is logged, and each with another text. The others are not.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		task := retry.New("do it", slog.New(slog.NewTextHandler(&log, nil)))
		failures := []string{"full", "full", "gone", "gone", "full"}
		runs := 0
		_ = task.Keep(t.Context(), func(context.Context) error {
			if runs++; runs > len(failures) {
				task.Succeeded()
				return nil
			}
			return errors.New(failures[runs-1])
		})
		var logged []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(strings.TrimSpace(line), "error=")
			logged = append(logged, text)
		}
		if want := []string{"full", "gone", "full", ""}; !slices.Equal(logged, want) || !strings.Contains(log.String(), "can do it again") {
			t.Errorf("logged the errors %q, want %q:\n%s", logged, want, log.String())
		}
	})
}

// TestEndWhileWaiting: a task does not run again once its context has ended.
func TestEndWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began, runs := time.Now(), 0
		err := retry.New("do it", slog.New(slog.DiscardHandler)).Keep(ctx, func(context.Context) error {
			runs++
			return errors.New("broken")
		})
		if took := time.Since(began); err != nil || runs != 1 || took != time.Millisecond {
			t.Errorf("%d runs in %v: %v, want one, until the context ended", runs, took, err)
		}
	})
}

// The end of the context ends a task, and is no failure of it.
func TestEnd(t *testing.T) {
	task := retry.New("do it", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	err := task.Keep(ctx, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})
	if err != nil || task.Stopped() != nil {
		t.Errorf("%v, stopped: %v", err, task.Stopped())
	}
}

func TestSleep(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, length := range []time.Duration{-time.Second, 0, time.Millisecond} {
		if err := retry.Sleep(t.Context(), length); err != nil {
			t.Errorf("%v: %v", length, err)
		}
	}
	for _, length := range []time.Duration{-time.Second, 0, time.Hour} {
		if err := retry.Sleep(ended, length); !errors.Is(err, context.Canceled) {
			t.Errorf("%v with an ended context: %v", length, err)
		}
	}
}

// A longer context is done some time after the other, or when it is cancelled.
func TestOutlast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		longer, cancel := retry.Outlast(ctx, time.Second)
		defer cancel()
		end()
		began := time.Now()
		<-longer.Done()
		if took := time.Since(began); took != time.Second {
			t.Errorf("done after %v, expected one second", took)
		}
		cancelled, cancel := retry.Outlast(t.Context(), time.Second)
		if cancel(); cancelled.Err() == nil {
			t.Error("not done after it was cancelled")
		}
	})
}
