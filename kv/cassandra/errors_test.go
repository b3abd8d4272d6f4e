package cassandra

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A node goes down while it prepares a statement. The driver then returns the end of the connection's context. The caller's
// goes on, so the statement is tried again.
func TestClosedConnectionIsRetried(t *testing.T) {
	c := &Cluster{log: slog.New(slog.DiscardHandler)}
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		attempts := 0
		err := c.retry(t.Context(), readPatience, func(context.Context) error {
			if attempts++; attempts == 1 {
				return ended
			}
			return nil
		})
		if err != nil || attempts != 2 {
			t.Errorf("after %v: %v, %d attempts, expected 2", ended, err, attempts)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.retry(ctx, readPatience, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller has canceled: %v", err)
	}
}
