package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	reachTime  = 5 * time.Second        // for a server that is just starting or stopping
	reachPause = 100 * time.Millisecond // between attempts
)

// Reach returns what can be done in the data directory dir, from open if that can open the
// store, else, if its error is one by locked, through the process that has it.
// While a server starts or stops there may be neither; Reach tries for some
// seconds. The closer must be closed after use.
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
			return Service{}, nil, fmt.Errorf("%s is in use by another process, and that takes no commands: %w", dir, errors.Join(openErr, dialErr))
		}
	}
}
