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

// Reach returns the keys of the data directory dir, from open if that can open the
// store, else, if its error is one by locked, through the process that has it.
// While a server starts or stops there may be neither; Reach tries for some
// seconds. The closer must be closed after use.
func Reach(
	ctx context.Context,
	dir string,
	open func(context.Context) (Keys, io.Closer, error),
	locked func(error) bool,
) (Keys, io.Closer, error) {
	giveUp := time.NewTimer(reachTime)
	defer giveUp.Stop()
	for {
		keys, closer, openErr := open(ctx)
		if openErr == nil {
			return keys, closer, nil
		}
		if !locked(openErr) {
			return nil, nil, openErr
		}
		client, dialErr := Dial(ctx, dir)
		if dialErr == nil {
			return client, client, nil
		}
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-giveUp.C:
			return nil, nil, fmt.Errorf("%s is in use by another process, and that takes no commands: %w", dir, errors.Join(openErr, dialErr))
		}
	}
}
