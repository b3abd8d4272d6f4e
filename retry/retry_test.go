package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

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
