package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/kv"
	"ashlar/kv/cassandra"
	"ashlar/retry"
)

const (
	// commandWait is how long a command waits for the lease of a process that was killed, which
	// may have been the same command.
	commandWait = cassandra.DefaultLease + 4*time.Second
	leaseRetry  = 500 * time.Millisecond // between two attempts
)

// AwaitLease opens the store of a name, and waits while another process writes to it: at most
// for most, or until ctx is done if most is 0. It logs once that it waits, for what and how long.
func AwaitLease[S any](ctx context.Context, name string, most time.Duration, open func() (S, error)) (S, error) {
	began := time.Now()
	for logged := false; ; logged = true {
		opened, err := open()
		if !errors.Is(err, kv.ErrInUse) {
			return opened, err
		}
		if most > 0 && time.Since(began) > most {
			return opened, fmt.Errorf("%w (waited %s for it)", err, time.Since(began).Round(time.Second))
		}
		if !logged {
			about := []any{"store", name, "because", err}
			if most > 0 {
				about = append(about, "at_most", most)
			}
			slog.Info("waiting for the lease", about...)
		}
		if err := retry.Sleep(ctx, leaseRetry); err != nil {
			return opened, err
		}
	}
}
