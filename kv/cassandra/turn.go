package cassandra

import (
	"context"
	"errors"
	"fmt"

	"ashlar/kv"
)

// turn is what goroutines take one after another. Other than for a mutex, they wait only until their contexts are done.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. What is waited for are others that wait for nodes. So if a deadline passes, the error is that of a
// write that the nodes have not answered in time.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
	}
	err := ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return err
}

// end gives the turn to the next.
func (t turn) end() { <-t }
