package beacon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/evm/source/beacon/lightclient"

	"golang.org/x/sync/errgroup"
)

const (
	// asideTime is for how long a node is set aside whose data is false.
	asideTime = 10 * time.Minute
	// firstRest and longestRest are for how long a node that failed is left alone.
	firstRest   = time.Second
	longestRest = time.Minute
	// scheduleTime is for how long a node's schedule of forks is used: it gets new ones when
	// a later version of the node is installed.
	scheduleTime = time.Hour
)

// asked is a node with how it behaves. Run alone uses it; the fields that the status has are
// changed under the follower's lock.
type asked struct {
	*Node
	log *slog.Logger

	known    *lightclient.Chain // as the node says; nil before it has answered
	read     time.Time          // when known was read
	slot     uint64             // the newest that it named, which may be false
	why      string             // why its last answer was of no use; empty if it was
	resting  time.Time          // until then it is left alone
	aside    time.Time          // until then it is set aside
	inARow   int                // failures
	failures uint64
	invalid  uint64
}

// usable reports whether the node is asked now.
func (n *asked) usable(now time.Time) bool { return !now.Before(n.resting) && !now.Before(n.aside) }

// learn asks the node for its schedule, if that is not known.
func (f *Follower) learn(ctx context.Context, n *asked) error {
	now := f.config.Now()
	if n.known != nil && now.Sub(n.read) < scheduleTime {
		return nil
	}
	chain, err := n.chain(ctx)
	if err == nil {
		err = compare(chain, f.config.Known)
	}
	if err != nil {
		return err
	}
	n.known, n.read = chain, now
	return nil
}

// ask asks one node after the other until one has given what is of use. The error is why none
// has.
func (f *Follower) ask(ctx context.Context, what string, question func(context.Context, *asked) (enough bool, err error)) error {
	for _, n := range f.nodes {
		if !n.usable(f.config.Now()) {
			continue
		}
		err := f.learn(ctx, n)
		enough := false
		if err == nil {
			enough, err = question(ctx, n)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.judge(n, what, err)
		if enough {
			return nil
		}
	}
	return fmt.Errorf("no beacon node has the %s: %w", what, f.whyNone())
}

// askAll asks all nodes at once and has each answer used, one after the other. It returns an
// error if none was of use.
func (f *Follower) askAll(ctx context.Context, question func(context.Context, *asked) ([]*lightclient.Update, error), use func(*asked, []*lightclient.Update) error) error {
	type answer struct {
		n       *asked
		updates []*lightclient.Update
		err     error
	}
	var answers []*answer
	var group errgroup.Group
	for _, n := range f.nodes {
		if !n.usable(f.config.Now()) {
			continue
		}
		a := &answer{n: n}
		answers = append(answers, a)
		group.Go(func() error {
			if a.err = f.learn(ctx, n); a.err == nil {
				a.updates, a.err = question(ctx, n)
			}
			return nil
		})
	}
	_ = group.Wait() // each answer has its error
	if ctx.Err() != nil {
		return ctx.Err()
	}
	good := false
	for _, a := range answers {
		if a.err == nil {
			a.err = use(a.n, a.updates)
		}
		f.judge(a.n, "latest header", a.err)
		good = good || a.err == nil
	}
	if !good {
		return fmt.Errorf("no beacon node can be used: %w", f.whyNone())
	}
	return nil
}

// judge records what an answer says about a node.
func (f *Follower) judge(n *asked, what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.config.Now()
	if err == nil {
		n.why, n.inARow = "", 0
		return
	}
	before := n.why
	n.why = fmt.Sprintf("%s: %v", what, err)
	switch {
	case errors.Is(err, lightclient.ErrFalse):
		n.invalid++
		n.aside = now.Add(asideTime)
		n.log.Error("the beacon node sent false data: it is set aside", "asked_for", what, "error", err, "for", asideTime)
		return
	case errors.Is(err, errAbsent), errors.Is(err, lightclient.ErrFuture), errors.Is(err, lightclient.ErrGap), errors.Is(err, lightclient.ErrFewSigners):
		n.inARow = 0
	default:
		n.failures++
		n.resting = now.Add(min(firstRest<<min(n.inARow, 10), longestRest))
		n.inARow++
	}
	if before != n.why {
		n.log.Warn("the beacon node is of no use", "asked_for", what, "error", err)
	}
}

// whyNone returns why no node is of use, as the first one with a reason has it.
func (f *Follower) whyNone() error {
	for _, n := range f.nodes {
		if n.why != "" {
			return fmt.Errorf("%s: %s", n.name, n.why)
		}
	}
	return errors.New("the nodes name none")
}
