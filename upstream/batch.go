package upstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"ashlar/limit"

	"golang.org/x/sync/errgroup"
)

// AskAll asks several questions at once, in batches where nodes take them. Each answer has
// its own error. The account for which ctx is holds the answers until the last one has come.
func (p *Pool) AskAll(ctx context.Context, calls []Call) []Answer {
	answers := make([]Answer, len(calls))
	come := retained{lease: limit.Borrow(ctx)}
	defer come.lease.Release()
	var group errgroup.Group
	group.SetLimit(batchesAtOnce)
	for first := 0; first < len(calls); first += p.config.Batch {
		last := min(len(calls), first+p.config.Batch)
		group.Go(func() error {
			p.askBatch(ctx, calls[first:last], answers[first:last], &come)
			return nil
		})
	}
	_ = group.Wait() // the errors are in the answers
	return answers
}

const (
	batchesAtOnce = 4
	singlesAtOnce = 8
)

// retained counts the memory of answers that wait for others.
type retained struct {
	mu    sync.Mutex
	lease limit.Lease // guarded by mu
	bytes int         // guarded by mu
}

// keep counts an answer, or replaces it by an error if there is no memory for it.
func (r *retained) keep(a *Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Err != nil {
		return
	}
	if !r.lease.Hold(r.bytes + len(a.Result)) {
		*a = Answer{Node: a.Node, Err: limit.ErrMemory}
		return
	}
	r.bytes += len(a.Result)
}

// askBatch asks one node several questions in one request. Those that it does not answer are
// asked one by one.
func (p *Pool) askBatch(ctx context.Context, calls []Call, answers []Answer, come *retained) {
	all := make([]*Call, len(calls))
	most := calls[0]
	for i := range calls {
		all[i] = &calls[i]
		most.Needs = max(most.Needs, calls[i].Needs)
	}
	n, err := p.await(ctx, &most, nil, comesWithin)
	for i := range answers {
		answers[i].Err = cmp.Or(err, errUnfit)
	}
	if err != nil {
		return
	}
	if len(calls) > 1 && n.takesBatches(calls) {
		limited, cancel := p.limited(ctx)
		n.askBatch(limited, all, answers)
		cancel()
		for i := range answers {
			come.keep(&answers[i])
		}
	}
	var group errgroup.Group
	group.SetLimit(singlesAtOnce)
	for i := range calls {
		if retryable(all[i], answers[i].Err) && ctx.Err() == nil {
			group.Go(func() error {
				answer, err := p.Ask(ctx, calls[i])
				answers[i] = Answer{answer.Result, answer.Node, err}
				come.keep(&answers[i])
				return nil
			})
		}
	}
	_ = group.Wait()
}

// takesBatches reports whether the node takes batches, and takes the units of calls. Those of
// one of them have been taken.
func (n *node) takesBatches(calls []Call) bool {
	units := 0
	for i := range calls {
		units += n.unitsOf(calls[i].Method)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noBatch {
		return false
	}
	_, ok := n.take(time.Now(), units-n.unitsOf(calls[0].Method))
	return ok
}

// askBatch asks several questions in one request. If a method of them is hurried, so are all: the answer
// has none before it has those of that method.
func (n *node) askBatch(ctx context.Context, calls []*Call, answers []Answer) {
	requests := make([]request, len(calls))
	began, brief := time.Now(), false
	n.mu.Lock()
	for i, c := range calls {
		requests[i] = request{i, c.Method, n.params(c)}
		brief = brief || n.hurries(c, began)
	}
	n.mu.Unlock()
	ctx, cancel := n.within(ctx, brief)
	defer cancel()
	got, err := n.to.batch(ctx, requests)
	took := time.Since(began)
	if errors.Is(err, errNoBatch) {
		n.mu.Lock()
		n.noBatch = true
		n.mu.Unlock()
	}
	for i, c := range calls {
		if err != nil {
			answers[i].Err = errors.Join(errUnfit, err)
			continue
		}
		answers[i] = got[i]
		answers[i].Node = n.name
		if answers[i].Err == nil {
			answers[i].Err = c.check(answers[i].Result)
		}
		n.done(ctx, c, took, brief, answers[i].Err)
	}
	if err != nil && !errors.Is(err, errNoBatch) {
		n.done(ctx, calls[0], took, brief, err)
	}
}
