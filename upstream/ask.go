package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// errUnfit wraps an error of a Check that is not a lie.
var errUnfit = errors.New("the answer cannot be used")

// Unfit returns an error for [Call.Check]: another node may have a better answer.
func Unfit(why string) error { return fmt.Errorf("%w: %s", errUnfit, why) }

// Ask asks the nodes until one answers.
func (p *Pool) Ask(ctx context.Context, c Call) (Answer, error) {
	c.asked = new(askedNodes)
	switch {
	case c.Once:
		return p.ask(ctx, &c)
	case len(c.rejected) > 0:
		return p.askOthers(ctx, &c)
	}
	return p.share(ctx, &c)
}

// askOthers asks nodes whose answers to the call were not rejected.
func (p *Pool) askOthers(ctx context.Context, c *Call) (Answer, error) {
	r := &race{pool: p, call: c, attempts: make(chan attempt, len(p.nodes))}
	for _, a := range c.rejected {
		r.tried = append(r.tried, a.node)
		r.worst = c.moreTelling(r.worst, fmt.Errorf("%s: %w", a.node.name, a.node.showing(a.err)))
	}
	return r.finish(ctx)
}

// askedNodes are the nodes that a call was sent to.
type askedNodes struct {
	mu    sync.Mutex
	names []string // guarded by mu
}

// add records a node. It may be called on nil.
func (a *askedNodes) add(name string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names = append(a.names, name)
}

// ended returns the error of a call that its caller has stopped to wait for.
func ended(ctx context.Context, method string, asked *askedNodes) error {
	asked.mu.Lock()
	defer asked.mu.Unlock()
	if len(asked.names) == 0 {
		return fmt.Errorf("%s: no node was asked yet: %w", method, ctx.Err())
	}
	return fmt.Errorf("%s: no answer yet from %s: %w", method, strings.Join(asked.names, ", "), ctx.Err())
}

// attempt is the outcome of one call to one node.
type attempt struct {
	node   *node
	result json.RawMessage
	err    error
}

// ask asks one node after the other until one answers. A node that is late gets a rival. The
// first node is asked without another goroutine, because most calls need no other node.
func (p *Pool) ask(ctx context.Context, c *Call) (Answer, error) {
	first, err := p.await(ctx, c, nil, comesWithin)
	if err != nil {
		return Answer{}, err
	}
	r := &race{pool: p, call: c, attempts: make(chan attempt, len(p.nodes)), tried: []*node{first}}
	trying, giveUp := p.limited(ctx)
	defer giveUp()
	rivals := make(chan outcome, 1)
	late := p.whenLate(c, first, func() {
		r.running = 1
		answer, err := r.finish(ctx)
		rivals <- outcome{answer, err}
		giveUp()
	})
	result, err := first.ask(trying, c)
	if !late() {
		r.attempts <- attempt{first, result, err}
		o := <-rivals
		return o.answer, o.err
	}
	if err != nil && ctx.Err() != nil {
		return Answer{}, ended(ctx, c.Method, c.asked)
	}
	if !retryable(c, err) {
		return Answer{Result: result, Node: first.name}, c.final(first, err)
	}
	r.worst = fmt.Errorf("%s: %w", first.name, first.showing(err))
	return r.finish(ctx)
}

// outcome is how a call ended.
type outcome struct {
	answer Answer
	err    error
}

// limited returns a context for one request to one node.
func (p *Pool) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.config.Time, errSlow)
}

// race is a call for which more than one node is asked.
type race struct {
	pool     *Pool
	call     *Call
	attempts chan attempt
	tried    []*node
	running  int
	worst    error // of the failed attempts, the one that says most
	// behind is closed when a node may have caught up that is to be asked, see catchesUp; nil: there is none.
	behind <-chan struct{}
}

// start asks one more node, if there is one.
func (r *race) start(ctx context.Context) {
	changed := r.pool.Changed()
	n, err := r.pool.pick(r.call, r.tried)
	switch {
	case err == nil:
		r.run(ctx, n)
	case catchesUp(err, 0):
		r.behind = changed
	default:
		r.behind = nil
	}
}

func (r *race) run(ctx context.Context, n *node) {
	r.tried, r.behind = append(r.tried, n), nil
	r.running++
	r.pool.calls.Go(func() {
		ctx, cancel := r.pool.limited(ctx)
		defer cancel()
		result, err := n.ask(ctx, r.call)
		r.attempts <- attempt{n, result, err}
	})
}

// finish asks another node, and one more for each attempt that failed. It returns the first
// answer, and ends the calls that it has begun.
func (r *race) finish(ctx context.Context) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.start(ctx)
	for {
		for r.running > 0 {
			select {
			case a := <-r.attempts:
				r.running--
				if !retryable(r.call, a.err) {
					return Answer{Result: a.result, Node: a.node.name}, r.call.final(a.node, a.err)
				}
				r.worst = r.call.moreTelling(r.worst, fmt.Errorf("%s: %w", a.node.name, a.node.showing(a.err)))
				r.start(ctx)
			case <-r.behind: // the node that was asked first is late
				r.start(ctx)
			case <-ctx.Done():
				return Answer{}, ended(ctx, r.call.Method, r.call.asked)
			}
		}
		failed := unanswered(r.call, r.worst)
		if !errors.Is(failed, ErrUnavailable) {
			return Answer{}, failed
		}
		n, err := r.pool.await(ctx, r.call, r.tried, catchesUp)
		if ctx.Err() != nil {
			return Answer{}, ended(ctx, r.call.Method, r.call.asked)
		}
		if err != nil {
			return Answer{}, failed
		}
		r.run(ctx, n)
	}
}

// whenLate calls a function when the answer of a node is late, unless the call must not be
// repeated. The function that it returns prevents that, and reports whether it was in time.
func (p *Pool) whenLate(c *Call, n *node, call func()) (prevent func() bool) {
	if c.Once {
		return func() bool { return true }
	}
	return time.AfterFunc(n.lateAfter(c.Method), call).Stop
}

// retryable reports whether another node can give a better answer than an error. A call that changes
// something is not repeated if it may have been done.
func retryable(c *Call, err error) bool {
	if err == nil {
		return false
	}
	why, _ := c.faultOf(err)
	return why != answered && (!c.Once || why != failed || undone(err))
}

// final returns the error of a call that no other node is asked, after that of an attempt.
func (c *Call) final(n *node, err error) error {
	if err == nil {
		return nil
	}
	var node *NodeError
	if why, _ := c.faultOf(err); why == answered || errors.As(err, &node) {
		return n.showing(err)
	}
	return fmt.Errorf("%w: %s: %s: %w", ErrUncertain, c.Method, n.name, n.showing(err))
}

// moreTelling returns the error that says more about the call; of equals, the first.
func (c *Call) moreTelling(a, b error) error {
	if a == nil || c.says(b) > c.says(a) {
		return b
	}
	return a
}

// saysRefused is what says returns for a node's refusal.
const saysRefused = 4

// says returns how much an error of an attempt says about the call: most if the node refused the
// call, less if it failed at it, less still if its answer cannot be used, such as null or one that is
// too large, and nearly nothing if there was no answer. A proxy that refused the call, also because it is
// too large, says least: only if all nodes do is that told to the client.
func (c *Call) says(err error) int {
	var node *NodeError
	switch why, _ := c.faultOf(err); {
	case errors.As(err, &node) && why == answered && !isUnconfirmed(node):
		return saysRefused
	case errors.As(err, &node):
		return 3
	case errors.Is(err, errUnfit), errors.Is(err, ErrTooLarge):
		return 2
	case errors.Is(err, ErrCallRefused), errors.Is(err, ErrCallTooLarge):
		return 0
	}
	return 1
}

// unanswered returns the error of a call that no node has answered.
func unanswered(c *Call, worst error) error {
	var node *NodeError
	if errors.Is(worst, ErrPruned) || errors.Is(worst, ErrCallTooLarge) || errors.As(worst, &node) && !(c.Stored && classify(c.Method, c.Params, node) == answered) {
		return worst
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, worst)
}

// await returns a node for a call that is not among those tried. While there is none, it waits for
// a change, if comes says that one may come in time.
func (p *Pool) await(ctx context.Context, c *Call, tried []*node, comes func(refused error, wait time.Duration) bool) (*node, error) {
	var patience <-chan time.Time
	for {
		changed := p.Changed()
		n, err := p.pick(c, tried)
		if err == nil || !comes(err, p.config.Wait) {
			return n, err
		}
		if patience == nil {
			timer := time.NewTimer(p.config.Wait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-time.After(p.config.Poll): // credits come back without a change
		case <-patience:
			return nil, err
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w (%w)", c.Method, ctx.Err(), err)
		}
	}
}

// Broadcast makes a call at several nodes at once, such as sending a transaction, and
// returns the first answer that is not an error. If there is none, but a node refuses the call, it returns the error
// that says most; else [ErrUncertain] if a node may have done what the call asks for. If a node may have, and another one
// knows the transaction, it is [ErrKnown].
func (p *Pool) Broadcast(ctx context.Context, c Call, most int) (Answer, error) {
	c.asked = new(askedNodes)
	first, err := p.await(ctx, &c, nil, comesWithin)
	if err != nil {
		return Answer{}, err
	}
	chosen := []*node{first}
	for len(chosen) < most {
		n, err := p.pick(&c, chosen)
		if err != nil {
			break
		}
		chosen = append(chosen, n)
	}
	// The others go on if the first has answered, even if the caller leaves.
	attempts := make(chan attempt, len(chosen))
	for _, n := range chosen {
		p.calls.Go(func() {
			ctx, cancel := p.limited(p.open)
			defer cancel()
			result, err := n.ask(ctx, &c)
			attempts <- attempt{n, result, err}
		})
	}
	var worst, uncertain error // of the failed attempts: the one that says most; the first that may have been done
	var known error            // of a node that has the transaction
	for range chosen {
		select {
		case a := <-attempts:
			if a.err == nil {
				return Answer{Result: a.result, Node: a.node.name}, nil
			}
			failure := fmt.Errorf("%s: %w", a.node.name, a.node.showing(a.err))
			worst = c.moreTelling(worst, failure)
			if uncertain == nil && c.mayBeDone(a.err) {
				uncertain = failure
			}
			if node := (*NodeError)(nil); errors.As(a.err, &node) && IsKnown(node) {
				known = failure
			}
		case <-ctx.Done():
			return Answer{}, ended(ctx, c.Method, c.asked)
		}
	}
	if uncertain != nil && known != nil {
		return Answer{}, fmt.Errorf("%w: %w, after %v", ErrKnown, known, uncertain)
	}
	if uncertain != nil && c.says(worst) < saysRefused {
		return Answer{}, fmt.Errorf("%w: %s: %w", ErrUncertain, c.Method, uncertain)
	}
	return Answer{}, unanswered(&c, worst)
}

// AskEach asks those of some nodes that can be asked, once: for questions on which nodes must agree. It returns at once. The channel
// has the answers in the order in which they come, and is closed after the last. The questions end with ctx.
func (p *Pool) AskEach(ctx context.Context, c Call, names []string) <-chan Answer {
	chainID, now := p.ChainID(), time.Now()
	answers := make(chan Answer, len(p.nodes))
	var asking sync.WaitGroup
	for _, n := range p.nodes {
		if !slices.Contains(names, n.name) || n.obstacle(&c, chainID, now).kind != none {
			continue
		}
		if _, ok := n.take(now, n.unitsOf(c.Method)); !ok {
			continue
		}
		asking.Go(func() {
			ctx, cancel := p.limited(ctx)
			defer cancel()
			result, err := n.ask(ctx, &c)
			answers <- Answer{Result: result, Node: n.name, Err: err}
		})
	}
	go func() { // ends with the questions
		asking.Wait()
		close(answers)
	}()
	return answers
}
