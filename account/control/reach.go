package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	reachTime  = 5 * time.Second        // total, while a server is starting or stopping
	reachPause = 100 * time.Millisecond // between attempts
)

// Reach returns a Service for the data directory dir: from open if that succeeds, else, if
// the error of open is one that locked accepts, from the process that holds the lock. A
// server that is starting or stopping provides neither, so Reach retries for reachTime. The
// caller must close the returned closer.
func Reach(
	ctx context.Context,
	dir string,
	open func(context.Context) (Service, io.Closer, error),
	locked func(error) bool,
) (Service, io.Closer, error) {
	giveUp := time.NewTimer(reachTime)
	defer giveUp.Stop()
	for {
		service, closer, openErr := open(ctx)
		if openErr == nil {
			return service, closer, nil
		}
		if !locked(openErr) {
			return Service{}, nil, openErr
		}
		client, dialErr := Dial(ctx, dir)
		if dialErr == nil {
			return client.Service(), client, nil
		}
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
			return Service{}, nil, ctx.Err()
		case <-giveUp.C:
			return Service{}, nil, fmt.Errorf("%s is in use by another process, which does not accept commands: %w", dir, errors.Join(openErr, dialErr))
		}
	}
}
