package node

import (
	"context"
	"errors"
	"time"

	"ashlar/retry"

	"github.com/cenkalti/backoff/v5"
)

// retry calls ask until it succeeds or fails with an error that a retry cannot fix.
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
		n.options.Logger.Warn("a request to a node failed: trying again", "failures", p.failures+1, "error", err)
		if err := p.wait(ctx, status.After); err != nil {
			return err
		}
	}
}

// pause is an exponential backoff with jitter: it doubles with each consecutive failure up to a
// maximum, and is randomized by half, so that clients that failed together do not retry
// together.
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

// wait waits after one more failure. atLeast is the delay that the node requested; it is
// limited by the maximum.
func (p *pause) wait(ctx context.Context, atLeast time.Duration) error {
	p.failures++
	return retry.Sleep(ctx, max(p.backoff.NextBackOff(), min(atLeast, p.backoff.MaxInterval)))
}

// reset is called after a success.
func (p *pause) reset() {
	p.failures = 0
	p.backoff.Reset()
}
