package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
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
