package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// obstacle is why a node cannot be asked.
type obstacle struct {
	kind  kind
	why   string
	until time.Time // at least; zero: it may end at any time
}

// kind is a kind of obstacle.
type kind uint8

const (
	none         kind = iota
	silent            // it has not answered yet
	otherChain        // it is of another chain
	aside             // it is set aside because of a false answer
	failing           // it does not answer
	resting           // it wants fewer calls
	behind            // its head is below the block of the call
	lacksMethod       // it does not have the method
	broken            // it fails at the method
	lacksHistory      // it does not have the block of the call, or its state
	spent             // its credits are used up
)

// unlikely is for how long another chain is expected behind a URL.
const unlikely = 365 * 24 * time.Hour

// obstacle returns why the node cannot be asked. It does not consider its credits.
func (n *node) obstacle(c *Call, chainID uint64, now time.Time) obstacle {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.known || n.head.Hash == (common.Hash{}):
		return obstacle{kind: silent, why: "it has not answered yet"}
	case n.chainID != chainID:
		o := obstacle{kind: otherChain, why: fmt.Sprintf("it is on chain %d, expected %d", n.chainID, chainID)}
		if chainID != 0 {
			o.until = now.Add(unlikely)
		}
		return o
	case now.Before(n.aside):
		return obstacle{aside, "it is set aside: " + n.why, n.aside}
	case n.failures >= breakAfter:
		return obstacle{kind: failing, why: "it fails: " + n.why}
	case now.Before(n.resting):
		return obstacle{resting, "it wants fewer calls", n.resting}
	case n.head.Number < c.Needs:
		return obstacle{kind: behind, why: fmt.Sprintf("its head is %d, expected %d or later", n.head.Number, c.Needs)}
	}
	if r := n.methods[c.Method]; r != nil {
		if now.Before(r.lacking) {
			return obstacle{lacksMethod, "it does not have the method", r.lacking}
		}
		if now.Before(r.broken) {
			return obstacle{broken, "it fails at " + c.Method, r.broken}
		}
	}
	if d, ok := n.depth[c.History]; ok && c.History != NoHistory && now.Before(d.until) && n.head.Number-min(c.About, n.head.Number) >= d.blocks {
		return obstacle{lacksHistory, fmt.Sprintf("it lacks history %d blocks below the head", d.blocks), d.until}
	}
	return obstacle{}
}

// pick returns the best node for a call that is not among those tried, and takes the units
// of the call from it. Without one it says why.
func (p *Pool) pick(c *Call, tried []*node) (*node, error) {
	chainID, now := p.ChainID(), time.Now()
	var able []*node
	var refused refusal
	for _, n := range p.nodes {
		if slices.Contains(tried, n) {
			continue
		}
		if o := n.obstacle(c, chainID, now); o.kind != none {
			refused.add(n, o)
		} else {
			able = append(able, n)
		}
	}
	slices.SortStableFunc(able, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.turn(c.Method, now), b.turn(c.Method, now)), cmp.Compare(a.cost(c.Method), b.cost(c.Method)))
	})
	for _, n := range able {
		wait, ok := n.take(now, n.unitsOf(c.Method))
		if ok {
			return n, nil
		}
		refused.add(n, obstacle{spent, "its credits are used up", now.Add(wait)})
	}
	return nil, refused.of(c)
}

// refusal is why no node can be asked.
type refusal struct {
	obstacles []obstacle
	reasons   []error // with the names of the nodes
	kind      error   // set by of
}

func (r *refusal) add(n *node, o obstacle) {
	r.obstacles = append(r.obstacles, o)
	r.reasons = append(r.reasons, fmt.Errorf("%s: %s", n.name, o.why))
}

// of returns the refusal of a call.
func (r *refusal) of(c *Call) error {
	switch {
	case r.all(lacksMethod, silent, otherChain, failing):
		return fmt.Errorf("%w: %s", ErrUnsupported, c.Method)
	case r.all(lacksHistory, otherChain):
		r.kind = ErrPruned
	case r.all(aside, otherChain):
		r.kind = &AsideError{r.until()}
	default:
		r.kind = ErrUnavailable
	}
	return r
}

// all reports whether at least one node has an obstacle of a kind, and all others have it or one
// that does not count.
func (r *refusal) all(of kind, uncounted ...kind) bool {
	has := func(o obstacle) bool { return o.kind == of }
	return slices.ContainsFunc(r.obstacles, has) &&
		!slices.ContainsFunc(r.obstacles, func(o obstacle) bool { return !has(o) && !slices.Contains(uncounted, o.kind) })
}

// until returns when the first node can be asked again; zero if that may be at any time.
func (r *refusal) until() time.Time {
	if len(r.obstacles) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(r.obstacles, func(a, b obstacle) int { return a.until.Compare(b.until) }).until
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%v: %v", r.kind, errors.Join(r.reasons...))
}

func (r *refusal) Unwrap() error { return r.kind }

// comesWithin reports whether a node may become able to take a call that pick has refused.
func comesWithin(err error, wait time.Duration) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.until().Before(time.Now().Add(wait))
}

// catchesUp reports whether a node that was not tried is only behind: often another node was
// asked first about a new head.
func catchesUp(err error, _ time.Duration) bool {
	var refused *refusal
	return errors.As(err, &refused) && slices.ContainsFunc(refused.obstacles, func(o obstacle) bool { return o.kind == behind })
}

// AsideError means that no node can answer, because all are set aside: they sent false answers.
// It wraps [ErrUnavailable].
type AsideError struct {
	Until time.Time // when the first of them is asked again
}

func (e *AsideError) Error() string {
	left := max(0, time.Until(e.Until)).Round(time.Second)
	return fmt.Sprintf("no upstream can answer for %v: all are set aside because of false answers", left)
}

func (e *AsideError) Unwrap() error { return ErrUnavailable }

// Aside returns an [*AsideError] if all nodes of the chain are set aside, else nil.
func (p *Pool) Aside() error {
	chainID, now := p.ChainID(), time.Now()
	var refused refusal
	for _, n := range p.nodes {
		refused.add(n, n.obstacle(new(Call), chainID, now))
	}
	if !refused.all(aside, otherChain) {
		return nil
	}
	return &AsideError{refused.until()}
}
