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

// candidate is the state of one node. Its fields are guarded by the pursuit's mutex, except
// the first three, which are immutable.
type candidate struct {
	node Node
	name string
	log  *slog.Logger

	forkchoice node.Forkchoice
	reachable  bool                        // forkchoice is up to date
	until      time.Time                   // not used before this time
	unreached  *backoff.ExponentialBackOff // after connection failures
	failed     *backoff.ExponentialBackOff // after failed imports of its blocks
	invalid    *backoff.ExponentialBackOff // after invalid answers
	why        string                      // why it is not used; empty if it is
	differs    string                      // how it differs from the nodes that agree; empty if it does not
	counts     Counts
	latency    time.Duration // of the last question for its head; 0 before the first answer
}

// Counts are totals of a node's faults since the start.
type Counts struct {
	Failures uint64 // no answer, or a change of branch between answers
	Invalid  uint64 // answers that no honest node gives
	TooDeep  uint64 // branches that fork off below our final block
}

// watch keeps the state of a node up to date, until ctx is done.
func (p *Pursuit) watch(ctx context.Context, c *candidate) {
	for {
		err := p.observe(ctx, c)
		if ctx.Err() != nil {
			return
		}
		wait := p.blame(c, err, false)
		if p.config.Quorum > 1 {
			p.wake() // one node less may be one too few
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// observe checks a node's identity, and then follows its head until an error occurs.
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
	silent := make(chan struct{}) // closed if the node does not announce heads
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := c.node.SubscribeHeads(ctx, func(head chain.Ref) {
			p.update(c, func(s *node.Forkchoice) { s.Head = head })
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

// poll requests a node's head, safe and finalized block: after each announced head, since
// the safe and finalized blocks are not announced, and periodically, since a subscription
// may fail silently and a rewound head is not announced.
func (p *Pursuit) poll(ctx context.Context, c *candidate, announced, silent <-chan struct{}) error {
	every := p.config.Pace.Recheck
	wait := time.NewTimer(p.config.Pace.Poll) // for heads from before the subscription
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
	began := time.Now()
	forkchoice, err := c.node.Forkchoice(ctx)
	if err == nil {
		p.mu.Lock()
		c.latency = time.Since(began)
		p.mu.Unlock()
		p.update(c, func(s *node.Forkchoice) { *s = forkchoice })
	}
	return err
}

// update changes what a node claims.
func (p *Pursuit) update(c *candidate, change func(*node.Forkchoice)) {
	p.mu.Lock()
	before, reachable := c.forkchoice, c.reachable
	change(&c.forkchoice)
	now := c.forkchoice
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

// blame records a node's error and returns how long not to use the node. used says that the
// error occurred while importing its blocks.
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
	case ahead: // wait, but count no fault
		level, wait = slog.LevelError, retry.NextBackOff()
	default: // while watching a node, no error is our own
		c.counts.Failures++
		wait = retry.NextBackOff()
	}
	c.until = time.Now().Add(wait)
	if c.why != known {
		c.log.Log(context.Background(), level, "upstream not used", "error", err, "again_in", wait.Round(time.Millisecond))
	}
	return wait
}

// praise records that a node's head was reached.
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
