package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"ashlar/limit"
)

// flight is a call that is under way for one or more callers.
type flight struct {
	asked   *askedNodes
	done    chan struct{} // closed when answer and err are set
	answer  Answer
	err     error
	cancel  context.CancelFunc
	waiting int // guarded by Pool.mu: callers
}

// share makes a call, or waits for the answer to an identical one that is under way. The
// call is canceled when nobody waits for it anymore. The account of the first caller holds the
// answer while it arrives. If it has no memory for it, the others make the call on their own, and so
// do callers if the check of the first one refuses the answer, or their own: these need not be the same.
func (p *Pool) share(ctx context.Context, c *Call) (Answer, error) {
	key := c.Method + "\x00" + string(c.Params) + "\x00" + strconv.FormatUint(c.Needs, 16) + string(c.AsOf[:])
	p.mu.Lock()
	if p.open.Err() != nil {
		p.mu.Unlock()
		return Answer{}, fmt.Errorf("%w: the server is stopping", ErrUnavailable)
	}
	f, joined := p.flights[key]
	if !joined {
		f = p.launch(ctx, key, c)
	}
	f.waiting++
	p.mu.Unlock()
	select {
	case <-f.done:
		if joined && f.mayDiffer(c) {
			return p.ask(ctx, c)
		}
		return f.answer, f.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.waiting--; f.waiting == 0 && p.flights[key] == f {
		delete(p.flights, key)
		f.cancel()
	}
	return Answer{}, ended(ctx, c.Method, f.asked)
}

// mayDiffer reports whether the outcome for another caller with the same call may be a better one.
func (f *flight) mayDiffer(c *Call) bool {
	if f.err == nil {
		return c.check(f.answer.Result) != nil
	}
	return errors.Is(f.err, limit.ErrMemory) || errors.Is(f.err, errUnfit) || errors.Is(f.err, ErrLie)
}

// launch begins a call. One caller who leaves must not end it for the others. mu is held.
func (p *Pool) launch(ctx context.Context, key string, c *Call) *flight {
	flying, cancel := context.WithCancel(limit.OnBehalf(p.open, ctx))
	f := &flight{asked: c.asked, done: make(chan struct{}), cancel: cancel}
	p.flights[key] = f
	p.calls.Go(func() {
		defer cancel()
		f.answer, f.err = p.ask(flying, c)
		p.land(key, f)
		close(f.done)
	})
	return f
}

// land removes a call from those under way, so that the next identical one is sent.
func (p *Pool) land(key string, f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flights[key] == f {
		delete(p.flights, key)
	}
}
