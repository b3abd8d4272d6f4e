package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"ashlar/internal/await"
	"ashlar/limit"
)

// lender is an account.
type lender struct {
	budget  *limit.Budget
	holding limit.Holding
}

func (l *lender) Lend() limit.Lease { return limit.Lease{Budget: l.budget, Caller: &l.holding} }

// of returns the context of a request of an account.
func (l *lender) of(ctx context.Context) context.Context {
	return context.WithValue(ctx, limit.LenderKey{}, l)
}

// An answer is read as far as the account that asks has memory for it. The node is not blamed,
// and no other is asked.
func TestMemoryOfAnswers(t *testing.T) {
	one, two := newFake(t, 7, 10), newFake(t, 7, 10)
	result := strings.Repeat("x", 1<<20)
	for _, f := range []*fake{one, two} {
		f.answer = func(string, json.RawMessage) (any, *NodeError) { return result, nil }
	}
	p := open(t, Config{Nodes: nodesOf(one, two)})
	usable(t, p, 2)
	asked := func() int { return one.asked("m") + two.asked("m") }
	rich, poor := lender{budget: limit.NewBudget(16 << 20)}, lender{budget: limit.NewBudget(1 << 20)}
	if a, err := p.Ask(rich.of(t.Context()), Call{Method: "m"}); err != nil || len(a.Result) != len(result)+2 {
		t.Fatalf("%d bytes, %v", len(a.Result), err)
	}
	before := asked()
	for _, stored := range []bool{false, true} {
		if _, err := p.Ask(poor.of(t.Context()), Call{Method: "m", Stored: stored}); !errors.Is(err, limit.ErrMemory) {
			t.Errorf("error %v, expected %v", err, limit.ErrMemory)
		}
	}
	if _, err := p.Ask(poor.of(t.Context()), Call{Method: "m", Once: true}); !errors.Is(err, limit.ErrMemory) {
		t.Errorf("once: error %v, expected %v", err, limit.ErrMemory)
	}
	if asked() != before+3 {
		t.Errorf("3 calls were sent %d times", asked()-before)
	}
	for _, a := range p.AskAll(poor.of(t.Context()), []Call{{Method: "m"}, {Method: "m"}}) {
		if !errors.Is(a.Err, limit.ErrMemory) {
			t.Errorf("in a batch: error %v, expected %v", a.Err, limit.ErrMemory)
		}
	}
	if asked() != before+5 {
		t.Errorf("5 calls were sent %d times", asked()-before)
	}
	for _, s := range p.Status() {
		if s.Failures != 0 || !s.Usable {
			t.Errorf("the node is blamed: %+v", s)
		}
	}
	if held := rich.budget.Held() + poor.budget.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// A caller that waits for the call of another account gets the answer, even if that account has no memory for it.
func TestMemoryOfSomebodyElse(t *testing.T) {
	f := newFake(t, 7, 10)
	hold := make(chan struct{})
	f.answer = func(string, json.RawMessage) (any, *NodeError) { <-hold; return strings.Repeat("x", 1<<20), nil }
	p := open(t, Config{Nodes: nodesOf(f)})
	usable(t, p, 1)
	rich, poor := lender{budget: limit.NewBudget(16 << 20)}, lender{budget: limit.NewBudget(1 << 20)}
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := p.Ask(poor.of(t.Context()), Call{Method: "m"}); !errors.Is(err, limit.ErrMemory) {
			t.Errorf("error %v, expected %v", err, limit.ErrMemory)
		}
	})
	awaitCallers(t, p, 1)
	asking.Go(func() {
		if _, err := p.Ask(rich.of(t.Context()), Call{Method: "m"}); err != nil {
			t.Error(err)
		}
	})
	awaitCallers(t, p, 2)
	close(hold)
	asking.Wait()
}

// Answers that wait for others are held by the account that asks, and one for which it has no memory is an error.
func TestMemoryOfAnswersThatWait(t *testing.T) {
	f := newFake(t, 7, 10)
	come, hold := make(chan struct{}, 2), make(chan struct{})
	result := strings.Repeat("x", 1<<20)
	f.answer = func(method string, _ json.RawMessage) (any, *NodeError) {
		if method == "late" {
			<-hold
		}
		return result, nil
	}
	p := open(t, Config{Nodes: nodesOf(f), Batch: 1})
	usable(t, p, 1)
	rich := lender{budget: limit.NewBudget(64 << 20)}
	seen := func(json.RawMessage) error { come <- struct{}{}; return nil }
	asked := make(chan []Answer)
	go func() {
		asked <- p.AskAll(rich.of(t.Context()), []Call{{Method: "one", Check: seen}, {Method: "two", Check: seen}, {Method: "late"}})
	}()
	<-come
	<-come
	await.Until(t, "two answers to be held", func() bool { held := rich.budget.Held(); return held > 2<<20 && held < 3<<20 })
	close(hold)
	for _, a := range <-asked {
		if a.Err != nil || len(a.Result) != len(result)+2 {
			t.Errorf("%d bytes, %v", len(a.Result), a.Err)
		}
	}
	if held := rich.budget.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}

	poor := lender{budget: limit.NewBudget(5 << 20)} // of which one account gets half
	r := retained{lease: poor.Lend()}
	for i, want := range []error{nil, nil, limit.ErrMemory} {
		a := Answer{Result: json.RawMessage(result), Node: "a"}
		if r.keep(&a); !errors.Is(a.Err, want) || (a.Result == nil) != (want != nil) {
			t.Errorf("answer %d: %d bytes, %v, expected %v", i, len(a.Result), a.Err, want)
		}
	}
}
