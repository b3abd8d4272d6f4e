package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrBusy is returned by Pool.Enter when a call finds no place in the queue, or loses it
// to a caller with fewer calls waiting.
var ErrBusy = errors.New("too many calls are waiting")

// Pool bounds how many calls run at once. A caller with no call running may take any free
// slot. A caller with some running may take another as long as a third as many slots stay
// free: so a newcomer need not wait for the calls of a caller that arrived first.
//
// Calls that get no slot wait. A slot that becomes free goes to the caller with the fewest
// calls running; on a tie, to the one that has waited longest for its turn. So each caller
// gets an even share, however many calls another has waiting. When too many calls wait, the
// newest call of the caller with the most waiting calls is dropped.
type Pool struct {
	slots      int
	maxWaiting int // calls of all callers
	free       atomic.Int64
	leaving    atomic.Int64 // running calls of callers that leave slots to others
	waiting    atomic.Int64
	mu         sync.Mutex
	inLine     []*Share // guarded by mu: callers that have calls waiting, in the order of their turns
}

// Share is what one caller has of a pool. The zero value has nothing.
type Share struct {
	// Most bounds how many calls of the caller run at once, however many slots are free;
	// 0: no bound. It must not be changed once calls have entered.
	Most int
	// Leaves is how many slots the calls of all callers that set it leave to those of others, which are over sooner. It must be
	// less than the slots of the pool, and must not be changed once calls have entered.
	Leaves  int
	running atomic.Int64
	queue   []*waiter // guarded by the pool's mu
}

// waiter is a call in a queue.
type waiter struct {
	resumes bool          // it had a slot before
	done    chan struct{} // closed when the call may run or was dropped
	dropped bool          // written before done is closed
}

// NewPool returns a pool of slots for which at most maxWaiting calls wait.
func NewPool(slots, maxWaiting int) *Pool {
	p := &Pool{slots: slots, maxWaiting: maxWaiting}
	p.free.Store(int64(slots))
	return p
}

// Enter returns nil once a call of s may run; Leave must follow. It returns ErrBusy or
// ctx's error when the call may not run; Leave must not follow.
func (p *Pool) Enter(ctx context.Context, s *Share) error {
	return p.enter(ctx, s, false)
}

// Resume is Enter for a call that had a slot before. It is served before the other calls of s that wait.
func (p *Pool) Resume(ctx context.Context, s *Share) error { return p.enter(ctx, s, true) }

// TryEnter reports whether a call of s runs now, without waiting; then Leave must follow. It leaves more slots
// free than Enter: a quarter of all, and as many as the caller has with this one, unless it is its first.
func (p *Pool) TryEnter(s *Share) bool {
	if p.take(s, 1, int64(p.slots/4)) {
		return true
	}
	p.wake()
	return false
}

func (p *Pool) enter(ctx context.Context, s *Share, resumes bool) error {
	if p.waiting.Load() == 0 && p.take(s, 3, 0) {
		return nil
	}
	return p.wait(ctx, s, &waiter{resumes: resumes, done: make(chan struct{})})
}

// Leave ends a call of s.
func (p *Pool) Leave(s *Share) {
	p.withdraw(s)
	p.free.Add(1)
	p.wake()
}

// wake serves the calls that wait, after a slot was freed or a caller has one call less. A call that begins to
// wait counts itself before it looks for a free slot, so either it sees that or it is seen here.
func (p *Pool) wake() {
	if p.waiting.Load() > 0 {
		p.mu.Lock()
		p.serve()
		p.mu.Unlock()
	}
}

// Running is how many calls run.
func (p *Pool) Running() int { return p.slots - int(p.free.Load()) }

// Waiting is how many calls wait to run.
func (p *Pool) Waiting() int { return int(p.waiting.Load()) }

// take takes a slot for a call of s, if it leaves those that are reserved, and if it is the first of s, or if s has
// no more slots with it than some times as many as stay free.
func (p *Pool) take(s *Share, times, reserved int64) bool {
	running, leaves := s.running.Add(1), s.Leaves > 0 && p.leaving.Add(1) > int64(p.slots-s.Leaves)
	for {
		free := p.free.Load()
		if free <= reserved || running > 1 && running > times*(free-1) || s.Most > 0 && running > int64(s.Most) || leaves {
			p.withdraw(s)
			return false
		}
		if p.free.CompareAndSwap(free, free-1) {
			return true
		}
	}
}

// withdraw counts a call of s no more.
func (p *Pool) withdraw(s *Share) {
	s.running.Add(-1)
	if s.Leaves > 0 {
		p.leaving.Add(-1)
	}
}

// wait queues a call of s and waits for its turn.
func (p *Pool) wait(ctx context.Context, s *Share, w *waiter) error {
	p.enqueue(s, w)
	select {
	case <-w.done:
		return w.err()
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i < 0 { // it was served or dropped at the same time
		return w.err()
	}
	p.remove(s, i)
	return ctx.Err()
}

// err is how the wait has ended.
func (w *waiter) err() error {
	if w.dropped {
		return ErrBusy
	}
	return nil
}

// enqueue adds a call of s to the queue. The call may be served or dropped at once.
func (p *Pool) enqueue(s *Share, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.queue) == 0 {
		p.inLine = append(p.inLine, s)
	}
	at := len(s.queue)
	for w.resumes && at > 0 && !s.queue[at-1].resumes {
		at--
	}
	s.queue = slices.Insert(s.queue, at, w)
	p.waiting.Add(1)
	p.serve()
	if int(p.waiting.Load()) > p.maxWaiting {
		p.drop(s)
	}
}

// drop drops the newest call of the longest queue; on a tie, of the queue that has just
// grown. p.mu is held.
func (p *Pool) drop(grown *Share) {
	longest := grown
	for _, s := range p.inLine {
		if len(s.queue) > len(longest.queue) {
			longest = s
		}
	}
	newest := len(longest.queue) - 1
	w := longest.queue[newest]
	p.remove(longest, newest)
	w.dropped = true
	close(w.done)
}

// remove removes a call from the queue of s. p.mu is held.
func (p *Pool) remove(s *Share, i int) {
	s.queue = slices.Delete(s.queue, i, i+1)
	p.waiting.Add(-1)
	if len(s.queue) == 0 {
		p.inLine = slices.DeleteFunc(p.inLine, func(other *Share) bool { return other == s })
	}
}

// serve gives slots to waiting calls. Of the callers that do not run as many calls as they
// may at most, and need not leave the slots to others, if the one with the fewest calls running may not
// take a slot, no other may. p.mu is held.
func (p *Pool) serve() {
	for {
		next, leaving := -1, p.leaving.Load()
		for i, s := range p.inLine {
			running := s.running.Load()
			may := (s.Leaves == 0 || leaving < int64(p.slots-s.Leaves)) && (s.Most == 0 || running < int64(s.Most))
			if may && (next < 0 || running < p.inLine[next].running.Load()) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		s := p.inLine[next]
		if !p.take(s, 3, 0) {
			return
		}
		p.inLine = slices.Delete(p.inLine, next, next+1)
		w := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		if len(s.queue) > 0 {
			p.inLine = append(p.inLine, s)
		}
		p.waiting.Add(-1)
		close(w.done)
	}
}
