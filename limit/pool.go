package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrBusy is returned by Pool.Enter where too many wait already.
var ErrBusy = errors.New("too many calls are waiting")

// Pool bounds how many calls run at once. Every caller may have one call running
// where there is a slot, and more as long as a third as many slots are left to
// others: whoever comes next need not wait for what one caller does with all its calls.
//
// Calls that find no slot wait, and a slot that becomes free goes to the caller that has
// the fewest calls running; among those to the one that has waited longest for its turn.
// So each gets an even share, however many calls another has waiting.
type Pool struct {
	slots      int
	maxWaiting int // of all callers
	maxEach    int // of one caller
	free       atomic.Int64
	waiting    atomic.Int64
	mu         sync.Mutex
	inLine     []*Share // guarded by mu: callers that have calls waiting, in the order of their turns
}

// Share is what one caller has of a pool. The zero value has nothing.
type Share struct {
	running atomic.Int64
	queue   []chan struct{} // guarded by the pool's mu; each is closed when its call may run
}

// NewPool returns a pool of slots for which as many calls as maxWaiting may wait, and
// half as many of one caller.
func NewPool(slots, maxWaiting int) *Pool {
	p := &Pool{slots: slots, maxWaiting: maxWaiting, maxEach: (maxWaiting + 1) / 2}
	p.free.Store(int64(slots))
	return p
}

// Enter returns once a call of s may run, which must be ended with Leave; or with
// ErrBusy, or with ctx's error, and then nothing is to be ended.
func (p *Pool) Enter(ctx context.Context, s *Share) error {
	if p.waiting.Load() == 0 && p.take(s) {
		return nil
	}
	return p.wait(ctx, s)
}

// Leave ends a call of s.
func (p *Pool) Leave(s *Share) {
	s.running.Add(-1)
	p.free.Add(1)
	// Whoever begins to wait makes itself known before it looks for a free slot, so
	// either it sees the one above or it is seen here.
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

// take takes a slot for a call of s, if s may have one.
func (p *Pool) take(s *Share) bool {
	running := s.running.Add(1)
	for {
		free := p.free.Load()
		if free == 0 || running > 1 && running > 3*(free-1) {
			s.running.Add(-1)
			return false
		}
		if p.free.CompareAndSwap(free, free-1) {
			return true
		}
	}
}

func (p *Pool) wait(ctx context.Context, s *Share) error {
	turn, err := p.queue(s)
	if err != nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(s.queue, turn)
	if i < 0 {
		return nil // the turn came at the same time
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	p.waiting.Add(-1)
	if len(s.queue) == 0 {
		p.inLine = slices.DeleteFunc(p.inLine, func(other *Share) bool { return other == s })
	}
	return ctx.Err()
}

// queue puts a call of s into the line.
func (p *Pool) queue(s *Share) (turn chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if int(p.waiting.Load()) >= p.maxWaiting || len(s.queue) >= p.maxEach {
		p.serve() // while take counted this call, another of s may have been passed over
		return nil, ErrBusy
	}
	turn = make(chan struct{})
	if len(s.queue) == 0 {
		p.inLine = append(p.inLine, s)
	}
	s.queue = append(s.queue, turn)
	p.waiting.Add(1)
	p.serve()
	return turn, nil
}

// serve hands slots to those in line. Where whoever has the fewest calls running may have
// none, nobody may. p.mu is held.
func (p *Pool) serve() {
	for len(p.inLine) > 0 {
		next := 0
		for i, s := range p.inLine {
			if s.running.Load() < p.inLine[next].running.Load() {
				next = i
			}
		}
		s := p.inLine[next]
		if !p.take(s) {
			return
		}
		p.inLine = slices.Delete(p.inLine, next, next+1)
		turn := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		if len(s.queue) > 0 {
			p.inLine = append(p.inLine, s)
		}
		p.waiting.Add(-1)
		close(turn)
	}
}
