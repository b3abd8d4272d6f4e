package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"ashlar/limit"
)

const (
	breakAfter  = 5                // failures in a row, after which a node or one of its methods is left alone
	firstBreak  = time.Second      // for which a method is left alone first
	longBreak   = time.Minute      // and at most
	forgetAfter = 10 * time.Minute // after which the pool tries again what a node could not do
	asideTime   = 10 * time.Minute // for which a node that lied is set aside
	maxMethods  = 256              // methods of which figures are kept
	lateAtFirst = time.Second      // see node.late
	hurried     = 10               // the part of a call's time that is left for a method while it is hurried
)

// Shallow is how many blocks below the head are so new that a node without them is late, or on another branch: it
// has not removed them.
const Shallow = 64

// node is one node of a pool. Its fields without a comment do not change.
type node struct {
	name   string // scheme and host, and a number if several nodes share them
	config Node
	units  map[string]int
	to     *transport
	rate   *limit.Meter
	day    limit.Day
	log    *slog.Logger
	late   time.Duration // after which an answer is late, until it is known what is usual
	brief  time.Duration // for a call of a method that is hurried

	mu       sync.Mutex
	known    bool                            // guarded by mu: the chain ID is known
	chainID  uint64                          // guarded by mu
	head     Head                            // guarded by mu: the last that it named
	byHash   bool                            // guarded by mu: it takes block hashes for states
	methods  map[string]*methodRecord        // guarded by mu
	depth    map[History]depth               // guarded by mu: of the history that it lacks
	running  int                             // guarded by mu: calls
	failures int                             // guarded by mu: in a row, of any method
	resting  time.Time                       // guarded by mu: until then it wants no calls
	aside    time.Time                       // guarded by mu: until then it is set aside
	spent    time.Time                       // guarded by mu: until then it has no units for a poll; zero after one
	heard    time.Time                       // guarded by mu: when it last answered anything, also with an error
	why      string                          // guarded by mu: the last failure, or the lie
	noBatch  bool                            // guarded by mu: it takes no batches
	latency  time.Duration                   // guarded by mu: of the last answer about its head
	count    struct{ failures, lies uint64 } // guarded by mu
}

// methodRecord is what is known about a method at a node.
type methodRecord struct {
	latencies
	average  time.Duration // of late
	errors   float64       // share of failures of late
	failures int           // in a row
	broken   time.Time     // left alone until then
	setbacks int           // refusals, and calls that took too long, in a row
	last     time.Time     // until then it is asked after all other nodes
	hurry    time.Time     // until then calls get less time, because calls that had all of it were not answered
	lacking  time.Time     // the node does not have it, as far as is known until then
}

// depth is the least number of blocks below the head at which a node lacked history.
type depth struct {
	blocks uint64
	until  time.Time // forgotten then
}

func newNode(config Node, name string, most int64, log *slog.Logger) (*node, error) {
	to, err := newTransport(&config, most)
	if err != nil {
		return nil, err
	}
	units, err := config.units()
	if err != nil {
		return nil, err
	}
	return &node{
		name: name, config: config, units: units, to: to, log: log.With("upstream", name),
		late:    lateAtFirst,
		rate:    limit.NewMeter(limit.Rate{PerSecond: config.Rate, Burst: config.burst()}),
		methods: make(map[string]*methodRecord), depth: make(map[History]depth),
	}, nil
}

// Names returns a name for each node that can be shown: it has no key.
func (n Nodes) Names() ([]string, error) {
	all, seen := make([]string, len(n)), make(map[string]int)
	for i := range n {
		u, err := n[i].parseURL()
		if err != nil {
			return nil, fmt.Errorf("number %d of %d: %w", i+1, len(n), err)
		}
		all[i] = u.Scheme + "://" + u.Host
		if seen[all[i]]++; seen[all[i]] > 1 {
			all[i] += " " + strconv.Itoa(seen[all[i]])
		}
	}
	return all, nil
}

// unitsOf returns the units of a call.
func (n *node) unitsOf(method string) int {
	if units, ok := n.units[method]; ok {
		return units
	}
	return 1
}

// take takes the units of calls from the node's budgets, if they are there; else it returns how
// long it takes until there are more.
func (n *node) take(now time.Time, units int) (wait time.Duration, ok bool) {
	if excess, ok := n.rate.Spend(now, units); !ok {
		return excess.Wait, false
	}
	return n.day.Spend(now, units, n.config.Daily)
}

// record returns the record of a method. mu is held.
func (n *node) record(method string) *methodRecord {
	r := n.methods[method]
	if r == nil {
		if len(n.methods) >= maxMethods {
			clear(n.methods)
		}
		r = new(methodRecord)
		n.methods[method] = r
	}
	return r
}

// cost estimates how long the node takes to answer, for comparison with others.
func (n *node) cost(method string) float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	average, errors := n.latency, 0.0
	if r := n.methods[method]; r != nil && r.average > 0 {
		average, errors = r.average, r.errors
	}
	return float64(max(average, time.Millisecond)) * float64(n.running+1) * (1 + 20*errors)
}

// turn returns when the node is asked, compared with others: backups come later, and nodes that refuse
// the method or take too long come last.
func (n *node) turn(method string, now time.Time) (turn int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.config.Backup {
		turn = 1
	}
	if r := n.methods[method]; r != nil && now.Before(r.last) {
		turn += 2
	}
	return turn
}

// lateAfter returns after which time nearly all answers to a method have come.
func (n *node) lateAfter(method string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.methods[method]; r != nil {
		if length, ok := r.quantile(0.95); ok {
			return length
		}
	}
	return n.late
}

// errSlow means that a node did not answer in time.
var errSlow = errors.New("no answer in time")

// ask makes one call and records how it went.
func (n *node) ask(ctx context.Context, c *Call) (json.RawMessage, error) {
	began := time.Now()
	n.mu.Lock()
	n.running++
	c.asked.add(n.name)
	params, brief := n.params(c), n.hurries(c, began)
	n.mu.Unlock()
	ctx, cancel := n.within(ctx, brief)
	defer cancel()
	result, err := n.to.call(ctx, c.Method, params)
	n.mu.Lock()
	n.running--
	n.mu.Unlock()
	if err == nil {
		err = c.check(result)
	}
	n.done(ctx, c, time.Since(began), brief, err)
	return result, err
}

// params returns the params of a call in the form that the node takes. mu is held.
func (n *node) params(c *Call) json.RawMessage {
	if c.Numbered != nil && !n.byHash {
		return c.Numbered
	}
	return c.Params
}

// check returns why an answer cannot be used.
func (c *Call) check(result json.RawMessage) error {
	if c.Check == nil {
		return nil
	}
	return Examine(result, c.Check)
}

// Examine checks an answer. One with which the check panics is a lie: no node must be able to end the process.
func Examine(result json.RawMessage, check func(json.RawMessage) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: its check panicked: %v", ErrLie, p)
		}
	}()
	return check(result)
}

// done records how a call went, which took so long, or had only the brief time of a method that is hurried.
func (n *node) done(ctx context.Context, c *Call, took time.Duration, brief bool, err error) {
	if errors.Is(err, ErrLie) {
		n.setAside(c.Method, err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r, now := n.record(c.Method), time.Now()
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) {
		r.add(took) // another node was faster; it would have taken longer still
		r.average = ewma(r.average, took)
		return
	}
	var why fault
	var rest time.Duration
	if err != nil {
		why, rest = c.faultOf(err)
	}
	switch why {
	case answered, pruned:
		n.heard = now
		n.failures, r.failures, r.setbacks, r.last, r.hurry = 0, 0, 0, time.Time{}, time.Time{}
		r.add(took)
		r.average, r.errors = ewma(r.average, took), r.errors*0.9
		if why == pruned && c.History != NoHistory {
			n.lack(c, now)
		}
	case unsupported:
		n.heard = now
		n.failures = 0
		r.lacking = now.Add(forgetAfter)
	case throttled:
		n.heard = now
		n.failures = 0
		n.resting = now.Add(min(max(rest, firstBreak), longBreak))
	case failed:
		within := took
		if brief {
			within = n.brief * hurried // a poll need not have been due meanwhile
		}
		n.fail(r, now, err, brief, tookLong(ctx, err) && n.heard.After(now.Add(-within)))
	}
}

// fail records a failure. brief is that of done; long says that the call took too long, while the node answered others. mu is
// held.
func (n *node) fail(r *methodRecord, now time.Time, err error, brief, long bool) {
	n.count.failures++
	n.why = n.shown(err)
	r.errors = r.errors*0.9 + 0.1
	var deliberate *NodeError
	if errors.As(err, &deliberate) || errors.Is(err, errUnfit) || errors.Is(err, ErrCallTooLarge) {
		n.heard, n.failures = now, 0 // it answers; a client's call must not make it count as down
		return
	}
	if long || refuses(err) {
		// Likewise: what a client sends changes only the order of the nodes. Polls find out whether it
		// refuses all calls, or hangs. A call that had little time says nothing new.
		if long && brief {
			return
		}
		if r.setbacks++; r.setbacks >= breakAfter {
			r.last = now.Add(breakTime(r.setbacks))
			if long {
				r.hurry = r.last
			}
		}
		return
	}
	if r.failures++; r.failures >= breakAfter {
		r.broken = now.Add(breakTime(r.failures))
	}
	if n.failures++; n.failures == breakAfter {
		n.log.Warn("the node fails: it is left alone until it answers again", "error", n.why)
	}
}

// breakTime returns for how long a method is left alone after failures in a row.
func breakTime(failures int) time.Duration {
	return min(firstBreak<<min(failures-breakAfter, 10), longBreak)
}

// lack records that the node lacks the history that a call is about. mu is held.
func (n *node) lack(c *Call, now time.Time) {
	below := n.head.Number - min(c.About, n.head.Number)
	if below < Shallow {
		return // it may not have got the block yet
	}
	if d, ok := n.depth[c.History]; ok && now.Before(d.until) && d.blocks <= below {
		return
	}
	n.depth[c.History] = depth{below, now.Add(forgetAfter)}
}

// setAside leaves the node alone because it lied.
func (n *node) setAside(method string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count.lies++
	n.why = n.shown(err)
	n.aside = time.Now().Add(asideTime)
	n.log.Error("the node sent a false answer: it is set aside", "method", method, "error", n.why, "for", asideTime)
}

// ewma adds a value to an average, in which older values count less and less.
func ewma(average, value time.Duration) time.Duration {
	if average == 0 {
		return value
	}
	return average - average/8 + value/8
}

// Status is how a node has behaved.
type Status struct {
	Name     string
	Head     Head
	Usable   bool
	Why      string        // why it is not usable
	Aside    time.Time     // until then it is set aside because of a false answer; zero: it is not
	Latency  time.Duration // of its last answer about its head
	Failures uint64        // requests without an answer
	Lies     uint64        // answers that no honest node gives
	// Methods are those that were asked for lately, with whether the node has them.
	Methods map[string]bool
	// Depth is how many blocks below its head it lacks history; those that are missing are
	// not known.
	Depth map[History]uint64
}

func (n *node) status(chainID uint64, now time.Time) Status {
	o := n.obstacle(new(Call), chainID, now)
	n.mu.Lock()
	defer n.mu.Unlock()
	s := Status{
		Name: n.name, Head: n.head, Usable: o.kind == none, Why: o.why, Latency: n.latency, Failures: n.count.failures,
		Lies: n.count.lies, Methods: make(map[string]bool), Depth: make(map[History]uint64),
	}
	switch {
	case o.kind == silent && n.why != "":
		s.Why = n.why
	case o.kind == aside:
		s.Aside = o.until
	case o.kind == none && n.spent.Sub(now) > longPause:
		s.Usable, s.Why = false, "its credits are used up"
	}
	for method, r := range n.methods {
		s.Methods[method] = !now.Before(r.lacking)
	}
	for history, d := range n.depth {
		if now.Before(d.until) {
			s.Depth[history] = d.blocks
		}
	}
	return s
}
