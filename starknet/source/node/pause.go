package node

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// retry asks until there is an answer, or one that will not become better.
func (n *Node) retry(ctx context.Context, ask func() error) error {
	p := n.newPause()
	for {
		err := ask()
		switch {
		case err == nil || errors.Is(err, ErrNotFound):
			n.record.answered()
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		n.record.failed(err, errors.Is(err, errCheck))
		if final(err) {
			return err
		}
		var status *StatusError
		if !errors.As(err, &status) {
			status = new(StatusError)
		}
		n.options.Logger.Warn("asking a node again", "failures", p.failures+1, "error", err)
		if err := p.wait(ctx, status.After); err != nil {
			return err
		}
	}
}

// pause waits after failures in a row: each time twice as long as before, up to the
// longest, give or take a random half, so that many clients that failed together do not
// come back together.
type pause struct {
	backoff  backoff.ExponentialBackOff
	failures int
}

func (n *Node) newPause() *pause {
	return &pause{backoff: backoff.ExponentialBackOff{
		InitialInterval: n.options.FirstPause, MaxInterval: n.options.LongestPause, Multiplier: 2,
		RandomizationFactor: backoff.DefaultRandomizationFactor,
	}}
}

// wait waits after one more failure, and not less than the node asks for, within reason.
func (p *pause) wait(ctx context.Context, atLeast time.Duration) error {
	p.failures++
	return sleep(ctx, max(p.backoff.NextBackOff(), min(atLeast, p.backoff.MaxInterval)))
}

// reset is for after a success.
func (p *pause) reset() {
	p.failures = 0
	p.backoff.Reset()
}

func sleep(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
