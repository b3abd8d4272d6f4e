package retry_test

import (
	"context"
	"errors"
	"log/slog"
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
