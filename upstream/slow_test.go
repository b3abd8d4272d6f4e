package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hang lets a node answer no request that contains a text, or answer it with a status after a poll that began later, and
// returns how many these were.
func hang(t *testing.T, f *fake, text string, status int) *atomic.Int64 {
	count, ended := new(atomic.Int64), make(chan struct{})
	t.Cleanup(func() { close(ended) })
	f.set(func(f *fake) {
		f.raw = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if !strings.Contains(string(body), text) {
				return false
			}
			count.Add(1)
			if status != 0 {
				const ofPoll = 3 // latest, safe and finalized
				polls := f.asked("eth_getBlockByNumber")
				until(t, "a poll that began later is over", func() bool { return f.asked("eth_getBlockByNumber") > polls+2*ofPoll })
				w.WriteHeader(status)
				return true
			}
			select {
			case <-r.Context().Done():
			case <-ended:
			}
			return true
		}
	})
	return count
}

// A node that is the first with a block and hangs does not keep those waiting who ask for the block, once another node has it.
func TestNodeThatIsAheadHangs(t *testing.T) {
	ahead, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Nodes: append(nodesOf(ahead), Node{URL: other.URL, Backup: true}), Time: time.Hour})
	usable(t, p, 2)
	for i := range 2 * enough { // what is usual
		mustAsk(t, p, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	ahead.set(func(f *fake) { f.head = 11 })
	until(t, "the first node is ahead", func() bool { return p.Status()[0].Head.Number == 11 })
	hung := hang(t, ahead, `"m"`, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := p.Ask(ctx, Call{Method: "m", Needs: 11})
		answered <- err
	}()
	until(t, "the first node is asked", func() bool { return hung.Load() == 1 })
	time.Sleep(50 * time.Millisecond) // so that its answer is late before the other node has the block
	other.set(func(f *fake) { f.head = 11 })
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// askSlow makes calls that no node answers in time, side by side.
func askSlow(t *testing.T, p *Pool, method string, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			if _, err := p.Ask(t.Context(), Call{Method: method, Params: fmt.Appendf(nil, `["slow",%d]`, i)}); !errors.Is(err, ErrUnavailable) {
				t.Errorf("a slow call: %v", err)
			}
		})
	}
	all.Wait()
}

// A client's calls that take too long end no other client's use of the method: the only node, which answers
// meanwhile, is asked for it.
func TestSlowCallsBreakNoMethod(t *testing.T) {
	for _, status := range []int{0, http.StatusGatewayTimeout, 524} {
		f := newFake(t, 7, 10)
		p := open(t, Config{Time: 3 * time.Second, Wait: time.Millisecond, Nodes: nodesOf(f)}) // of a poll, too, which a pause of the machine must not end
		usable(t, p, 1)
		hang(t, f, "slow", status)
		for range 3 {
			askSlow(t, p, "debug_m", 2*breakAfter)
			if o := p.nodes[0].obstacle(&Call{Method: "debug_m"}, 7, time.Now()); o.kind != none {
				t.Errorf("status %d: the node is not asked: %s", status, o.why)
			}
			mustAsk(t, p, Call{Method: "debug_m"})
		}
		if s := p.Status()[0]; s.Failures != 6*breakAfter {
			t.Errorf("status %d: %d failures are shown, want %d", status, s.Failures, 6*breakAfter)
		}
	}
}

// putBehindUntil returns until when a node is asked for a method after the others; zero if it never was.
func putBehindUntil(n *node, method string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.record(method).last
}

// A node at which a method takes too long again and again is asked for it after the others, for a while.
func TestSlowMethodIsAskedElsewhere(t *testing.T) {
	slow, backup := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Time: 3 * time.Second, Nodes: append(nodesOf(slow), Node{URL: backup.URL, Backup: true})})
	usable(t, p, 2)
	asked := hang(t, slow, `"debug_m"`, 0)
	began := time.Now()
	var all sync.WaitGroup
	for i := range breakAfter {
		all.Go(func() { _, _ = p.Ask(t.Context(), Call{Method: "debug_m", Params: fmt.Appendf(nil, "[%d]", i)}) })
	}
	all.Wait()
	ends := putBehindUntil(p.nodes[0], "debug_m") // which may be over already
	if at := ends.Add(-1); ends.Sub(began) < firstBreak || p.nodes[0].turn("debug_m", at) <= p.nodes[1].turn("debug_m", at) {
		t.Error("the slow node is asked before the backup")
	}
	if mustAsk(t, p, Call{Method: "other"}); slow.asked("other") != 1 {
		t.Error("the node was not asked for another method")
	}
	until(t, "it is asked again", func() bool {
		mustAsk(t, p, Call{Method: "debug_m"})
		return asked.Load() > breakAfter
	})
}

// A method that hangs at a node that answers its polls does not hold all callers for the whole time of a call. Calls that got
// less time do not prolong that, nor end other calls, and an answer ends it.
func TestHangingMethodIsHurried(t *testing.T) {
	f := newFake(t, 7, 10)
	p := open(t, Config{Time: 5 * time.Second, Poll: time.Second, Wait: time.Millisecond, Nodes: nodesOf(f)}) // a poll takes longer than a brief call
	usable(t, p, 1)
	n := p.nodes[0]
	record := func() methodRecord {
		n.mu.Lock()
		defer n.mu.Unlock()
		r := n.record("debug_m")
		return methodRecord{setbacks: r.setbacks, last: r.last, hurry: r.hurry, failures: r.failures}
	}
	hang(t, f, "slow", 0)
	began := time.Now()
	askSlow(t, p, "debug_m", breakAfter+3)
	before := record()
	if before.hurry.Sub(began) < firstBreak {
		t.Fatal("calls of the method get all of their time")
	}
	patient := make(chan struct{})
	go func() {
		defer close(patient)
		_, err := p.Ask(t.Context(), Call{Method: "debug_m", Params: []byte(`["slow"]`), Once: true})
		if !errors.Is(err, ErrUncertain) {
			t.Errorf("a call that changes something: %v", err)
		}
	}()
	askSlow(t, p, "debug_m", 2*breakAfter)
	select {
	case <-patient:
		t.Error("a call was given as long as one that changes something")
	default:
	}
	if now := record(); now != before {
		t.Errorf("brief calls made %+v of %+v", now, before)
	}
	if o := n.obstacle(&Call{Method: "other"}, 7, time.Now()); o.kind != none {
		t.Errorf("the node is not asked: %s", o.why)
	}
	<-patient
	if mustAsk(t, p, Call{Method: "debug_m"}); !record().hurry.IsZero() {
		t.Error("an answer did not end it")
	}
}

// A batch with a call of a method that hangs has no more time than that call, and neither prolongs it.
func TestHangingBatchIsHurried(t *testing.T) {
	f := newFake(t, 7, 10)
	p := open(t, Config{Time: 5 * time.Second, Poll: time.Second, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	n := p.nodes[0]
	asked := hang(t, f, "slow", 0)
	askSlow(t, p, "debug_m", breakAfter+3) // so that the brief time holds for seconds
	hurry := func() time.Time {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.record("debug_m").hurry
	}
	before := hurry()
	patient := make(chan struct{})
	go func() {
		defer close(patient)
		_, _ = p.Ask(t.Context(), Call{Method: "debug_m", Params: []byte(`["slow"]`), Once: true})
	}()
	answers := p.AskAll(t.Context(), []Call{{Method: "other"}, {Method: "debug_m", Params: []byte(`["slow"]`)}})
	if answers[0].Err != nil || !errors.Is(answers[1].Err, ErrUnavailable) {
		t.Errorf("a call that is answered alone: %v, one that hangs: %v", answers[0].Err, answers[1].Err)
	}
	select {
	case <-patient:
		t.Error("a batch was given as long as a call that changes something")
	default:
	}
	if now := hurry(); now != before {
		t.Errorf("a brief batch prolonged it from %v to %v", before, now)
	}
	if requests := asked.Load(); requests != breakAfter+3+3 {
		t.Errorf("%d requests had no answer, expected those before, the patient one, the batch, and its call alone", requests)
	}
	<-patient
}

// A call that changes something goes to the next node if the first one cannot be reached, and says so if none can.
func TestUnsentChange(t *testing.T) {
	gone, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Wait: time.Millisecond, Nodes: append(nodesOf(gone), Node{URL: other.URL, Backup: true})})
	usable(t, p, 2)
	closeNode := func(f *fake, n *node) {
		f.Close()
		n.to.http.CloseIdleConnections() // on which a call may have been sent
	}
	closeNode(gone, p.nodes[0])
	if a, err := p.Ask(t.Context(), Call{Method: "m", Once: true}); err != nil || a.Node != p.nodes[1].name {
		t.Errorf("answered by %q, %v", a.Node, err)
	}
	closeNode(other, p.nodes[1])
	if _, err := p.Ask(t.Context(), Call{Method: "m", Once: true}); errors.Is(err, ErrUncertain) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("no node can be reached: %v", err)
	}
}

// A node that answers nothing at all is left alone, although its polls have not failed often yet.
func TestHangingNodeIsLeftAlone(t *testing.T) {
	f := newFake(t, 7, 10)
	p := open(t, Config{Time: 200 * time.Millisecond, Poll: time.Hour, Wait: time.Millisecond, Nodes: nodesOf(f)})
	usable(t, p, 1)
	hang(t, f, "", 0)
	askSlow(t, p, "m", breakAfter)
	if o := p.nodes[0].obstacle(new(Call), 7, time.Now()); o.kind != failing {
		t.Errorf("the node is not left alone: %q", o.why)
	}
	if o := p.nodes[0].obstacle(&Call{Method: "m"}, 7, time.Now()); o.kind == none {
		t.Error("the method is not left alone")
	}
	if _, err := p.Ask(context.WithoutCancel(t.Context()), Call{Method: "m"}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// The error of a call that its caller has stopped to wait for says what was asked of whom.
func TestEndedCallNamesNodes(t *testing.T) {
	one, other := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: nodesOf(one, other)})
	for name, ask := range map[string]func(context.Context, Call) (Answer, error){
		"shared": p.Ask,
		"once": func(ctx context.Context, c Call) (Answer, error) {
			c.Once = true
			return p.Ask(ctx, c)
		},
		"broadcast": func(ctx context.Context, c Call) (Answer, error) { return p.Broadcast(ctx, c, 2) },
	} {
		usable(t, p, 2)
		ctx, cancel := context.WithCancel(t.Context())
		asked := []*atomic.Int64{hang(t, one, "debug_m", 0), hang(t, other, "debug_m", 0)}
		go func() {
			defer cancel()
			until(t, "a node is asked", func() bool { return asked[0].Load()+asked[1].Load() > 0 })
		}()
		_, err := ask(ctx, Call{Method: "debug_m"})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "debug_m") || !strings.Contains(err.Error(), "http://127.0.0.1:") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
