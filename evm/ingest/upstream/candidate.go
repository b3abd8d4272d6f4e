package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/chain"
	"ashlar/evm/source/node"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"
)

// candidate is a node and what is known of it. Its fields are guarded by the
// mutex of the pursuit, the first three aside, which do not change.
type candidate struct {
	node Node
	name string
	log  *slog.Logger

	standing  node.Standing
	reachable bool                        // standing is what it says now
	until     time.Time                   // when it may be used again
	unreached *backoff.ExponentialBackOff // after failures to reach it
	failed    *backoff.ExponentialBackOff // after failures to bring in its blocks
	invalid   *backoff.ExponentialBackOff // after invalid answers
	why       string                      // it is not used; empty when it is
	counts    Counts
}

// Counts say what a node did since the start.
type Counts struct {
	Failures uint64 // it did not answer, or changed its branch while it was asked
	Invalid  uint64 // it gave what no honest node gives
	TooDeep  uint64 // it was on a branch that leaves ours below what is final
}

// watch keeps what is known of a node up to date, until ctx is done.
func (p *Pursuit) watch(ctx context.Context, c *candidate) {
	for {
		err := p.observe(ctx, c)
		if ctx.Err() != nil {
			return
		}
		wait := p.blame(c, err, false)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// observe asks a node who it is, and then for its head, again and again, until
// something goes wrong.
func (p *Pursuit) observe(ctx context.Context, c *candidate) error {
	chainID, genesis, err := c.node.Identity(ctx)
	if err != nil {
		return err
	}
	if chainID != p.config.ChainID || genesis != p.config.Genesis {
		return &node.InvalidError{What: "its chain", Err: fmt.Errorf("the id is %d with the genesis %#x, expected %d with %#x",
			chainID, genesis, p.config.ChainID, p.config.Genesis)}
	}
	if err := p.ask(ctx, c); err != nil {
		return err
	}
	announced := make(chan struct{}, 1)
	silent := make(chan struct{}) // closed when the node is known not to announce heads
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := c.node.SubscribeHeads(ctx, func(head chain.Ref) {
			p.heard(c, func(s *node.Standing) { s.Head = head })
			select {
			case announced <- struct{}{}:
			default:
			}
		})
		if errors.Is(err, node.ErrNoSubscriptions) {
			close(silent)
			return nil
		}
		return err
	})
	group.Go(func() error { return p.poll(ctx, c, announced, silent) })
	if p.config.Waiting != nil {
		group.Go(func() error { p.followPool(ctx, c); return nil })
	}
	return group.Wait()
}

// poll asks a node for its standing: after each head that it announces, since what
// is safe or finalized is not announced, and from time to time, since a
// subscription may fail unseen and a head that is wound back is not announced.
func (p *Pursuit) poll(ctx context.Context, c *candidate, announced, silent <-chan struct{}) error {
	every := p.config.Pace.Recheck
	wait := time.NewTimer(p.config.Pace.Poll) // heads from before the subscription began
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-silent:
			every, silent = p.config.Pace.Poll, nil
			wait.Reset(every)
			continue
		case <-announced:
		case <-wait.C:
		}
		if err := p.ask(ctx, c); err != nil {
			return err
		}
		wait.Reset(every)
	}
}

func (p *Pursuit) ask(ctx context.Context, c *candidate) error {
	standing, err := c.node.Standing(ctx)
	if err == nil {
		p.heard(c, func(s *node.Standing) { *s = standing })
	}
	return err
}

// heard takes note of what a node says.
func (p *Pursuit) heard(c *candidate, change func(*node.Standing)) {
	p.mu.Lock()
	before, reachable := c.standing, c.reachable
	change(&c.standing)
	now := c.standing
	if reachable {
		c.unreached.Reset()
	} else {
		c.reachable, c.why = true, ""
	}
	p.mu.Unlock()
	if !reachable {
		c.log.Info("upstream answers", "head", now.Head.Number, "hash", now.Head.Hash)
	}
	if !reachable || now != before {
		p.wake()
	}
}

// blame takes note of what went wrong with a node and says how long not to use it.
// used says that it went wrong while blocks were brought in.
func (p *Pursuit) blame(c *candidate, err error, used bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := c.why
	c.why = err.Error()
	retry := c.failed
	if !used {
		c.reachable, retry = false, c.unreached
	}
	level, wait := slog.LevelWarn, time.Duration(0)
	switch faultOf(err) {
	case invalid:
		c.counts.Invalid++
		wait = c.invalid.NextBackOff()
	case tooDeep:
		c.counts.TooDeep++
		level, wait = slog.LevelError, p.config.Pace.Aside
	case ahead: // there is nothing else to wait for, but no fault to count either
		level, wait = slog.LevelError, retry.NextBackOff()
	default: // when a node is watched, nothing is our own fault
		c.counts.Failures++
		wait = retry.NextBackOff()
	}
	c.until = time.Now().Add(wait)
	if c.why != known {
		c.log.Log(context.Background(), level, "upstream not used", "because", err, "for", wait.Round(time.Millisecond))
	}
	return wait
}

// praise takes note that a node's head was reached.
func (p *Pursuit) praise(c *candidate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.why != "" {
		c.log.Info("upstream used again")
	}
	c.failed.Reset()
	c.invalid.Reset()
	c.why = ""
}
