package beacon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/evm/source/beacon/lightclient"
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
	// slowTime is the time for an answer after which a node is shown as slow, and another one is
	// asked for the committee that it has not given.
	slowTime = 3 * time.Second
	// mostWhy is how many characters of an error are shown: it may repeat what a node has sent.
	mostWhy = 500
)

// asked is a node with how it behaves. Run alone uses it; the fields that the status has are
// changed under the follower's lock.
type asked struct {
	*Node
	log *slog.Logger

	known  *lightclient.Chain // as the node says; nil before it has answered
	read   time.Time          // when known was read
	search uint64             // the last search for a committee in which it was asked

	since    time.Time     // when it was asked what it has not answered; zero: there is nothing
	latency  time.Duration // of its last answer
	slot     uint64        // the newest that it named, which may be false
	useful   bool          // its last answer was of use
	why      string        // why its last answer was not used; empty if it was, and before the first
	resting  time.Time     // until then it is left alone
	aside    time.Time     // until then it is set aside
	inARow   int           // failures
	failures uint64
	invalid  uint64
}

// usable reports whether the node is asked now.
func (n *asked) usable(now time.Time) bool { return !now.Before(n.resting) && !now.Before(n.aside) }

// slow returns what is slow about the node, empty if nothing is.
func (n *asked) slow(now time.Time) string {
	if waits := now.Sub(n.since); !n.since.IsZero() && waits >= slowTime {
		return fmt.Sprintf("slow: no answer for %v", waits.Round(time.Second))
	}
	if n.latency >= slowTime {
		return fmt.Sprintf("slow: its last answer took %v", n.latency.Round(100*time.Millisecond))
	}
	return ""
}

// kind is a kind of question.
type kind int

const (
	forBootstrap kind = iota
	forLatest
	forCommittee
)

// question is what a node is asked. A goroutine of its own calls get, which uses nothing of the
// follower that changes. Run calls use if get has returned no error.
type question struct {
	kind
	what string
	get  func(context.Context) (use func() error, err error)
}

// answer is a node's answer to a question.
type answer struct {
	question
	n     *asked
	chain *lightclient.Chain // as the node says; nil: it was not asked
	use   func() error
	err   error
}

// ask asks a node that has nothing else to answer. The answer goes to f.answers.
func (f *Follower) ask(ctx context.Context, n *asked, q question) {
	now := f.config.Now()
	f.see(func(*Status) { n.since = now })
	learn := n.known == nil || now.Sub(n.read) >= scheduleTime
	f.asking.Go(func() {
		a := answer{question: q, n: n}
		if learn {
			if a.chain, a.err = n.chain(ctx); a.err == nil {
				a.err = compare(a.chain, f.config.Known)
			}
		}
		if a.err == nil {
			a.use, a.err = q.get(ctx)
		}
		f.answers <- a // has room for one answer of each node
	})
}

// askIdle asks each node that is used, unless it has not answered yet.
func (f *Follower) askIdle(ctx context.Context) {
	for _, n := range f.nodes {
		if !n.since.IsZero() || !n.usable(f.config.Now()) {
			continue
		}
		if f.store == nil {
			f.ask(ctx, n, f.bootstrap(n))
		} else {
			f.ask(ctx, n, f.latest(n))
		}
	}
}

// take uses an answer, and asks its node on if there is more to ask at once.
func (f *Follower) take(ctx context.Context, a answer) {
	now, n, err := f.config.Now(), a.n, a.err
	f.see(func(*Status) { n.latency, n.since = now.Sub(n.since), time.Time{} })
	if a.kind == forCommittee {
		f.searching--
	}
	if err == nil {
		if a.chain != nil {
			n.known, n.read = a.chain, now
		}
		err = a.use()
	}
	if ctx.Err() != nil {
		return
	}
	f.judge(n, a.what, err)
	gap := errors.Is(err, lightclient.ErrGap)
	switch {
	case f.store == nil || !n.usable(now):
	case f.wantsCommittee(n, gap):
		f.ask(ctx, n, f.committee(n, gap))
	case a.kind != forLatest && err == nil:
		f.ask(ctx, n, f.latest(n))
	}
}

// judge records what an answer says about a node.
func (f *Follower) judge(n *asked, what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.config.Now()
	n.useful = err == nil
	if err == nil {
		n.why, n.inARow = "", 0
		return
	}
	before := n.why
	said := fmt.Sprintf("%.*v", mostWhy, err)
	n.why = what + ": " + said
	rest := func() {
		n.resting = now.Add(min(firstRest<<min(n.inARow, 10), longestRest))
		n.inARow++
	}
	switch {
	case errors.Is(err, lightclient.ErrFalse):
		n.invalid++
		n.aside = now.Add(asideTime)
		n.log.Error("the beacon node sent false data: it is set aside", "asked_for", what, "error", said, "for", asideTime)
		return
	case errors.Is(err, errAbsent):
		rest() // it need not be at fault
	case errors.Is(err, lightclient.ErrGap): // it has to give the committees: see committee
	case errors.Is(err, lightclient.ErrFuture), errors.Is(err, lightclient.ErrFewSigners):
		n.inARow = 0
	default:
		n.failures++
		rest()
	}
	if before != n.why {
		n.log.Warn("the beacon node is not used", "asked_for", what, "error", said)
	}
}

// none returns an error if no node is of use.
func (f *Follower) none() error {
	why := ""
	for _, n := range f.nodes {
		if n.useful {
			return nil
		}
		if n.why != "" {
			why = cmp.Or(why, n.name+": "+n.why)
		}
	}
	switch {
	case why == "":
		return errors.New("no beacon node has answered yet")
	case f.store == nil:
		return fmt.Errorf("no beacon node has the bootstrap of block %#x: %s", f.config.Checkpoint, why)
	}
	return fmt.Errorf("no beacon node can be used: %s", why)
}
