package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
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

// pause grows with each failure in a row: it doubles up to the longest, and of
// that at least half is waited and the rest left to chance, so that many who
// failed together do not come back together.
type pause struct {
	first, longest time.Duration
	failures       int
}

func (n *Node) newPause() *pause {
	return &pause{first: n.options.FirstPause, longest: n.options.LongestPause}
}

// next is how long to wait after one more failure.
func (p *pause) next() time.Duration {
	length := p.longest
	if p.failures < 32 && p.first < p.longest>>p.failures {
		length = p.first << p.failures
	}
	p.failures++
	return length/2 + rand.N(length/2+1)
}

// wait waits after one more failure, and not less than the node asks for, within reason.
func (p *pause) wait(ctx context.Context, atLeast time.Duration) error {
	return sleep(ctx, max(p.next(), min(atLeast, p.longest)))
}

// reset is for after a success.
func (p *pause) reset() { p.failures = 0 }

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
