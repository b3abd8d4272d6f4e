// Package worker runs work that cannot be trusted in processes of their own, so that no
// work can take the memory or the processors of the server, or end it. A worker is this
// program again, started with a command that confines the process ([Confine]) and then
// serves work from its standard input.
//
// A [Pool] starts workers when they are needed and keeps them for the next work. A worker
// ends with the first work that fails or whose context ends, because nothing can interrupt
// it for certain but the end of its process. It also ends after work that has used up half of
// its memory: Go never gives back what it has mapped, so the next work might find too little.
package worker

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"ashlar/limit"
)

// ErrClosed means that the pool was closed.
var ErrClosed = errors.New("the workers were stopped")

// maxWaiting bounds the work that waits for a worker. The callers' own limits are reached
// before.
const maxWaiting = 1000

// Pool starts and keeps workers. It is safe for concurrent use.
type Pool struct {
	command []string
	slots   *limit.Pool

	mu      sync.Mutex
	idle    []*process            // guarded by mu
	alive   map[*process]struct{} // guarded by mu
	started uint64                // guarded by mu
	ended   map[Reason]uint64     // guarded by mu
	failed  failedStart           // guarded by mu
	closed  bool                  // guarded by mu
	shares  map[string]*share     // guarded by mu
}

// share is what one caller has of the slots; guarded by the pool's mu.
type share struct {
	limit.Share
	users int // Do calls that refer to it
}

// DefaultSize is the number of workers for this machine.
func DefaultSize() int { return min(max(2, runtime.GOMAXPROCS(0)), 8) }

// NewPool returns a pool of at most size workers, which command starts: a program and its
// arguments. No worker is started yet. The pool must be closed.
func NewPool(size int, command ...string) *Pool {
	return &Pool{
		command: command, slots: limit.NewPool(size, maxWaiting), alive: make(map[*process]struct{}),
		ended: make(map[Reason]uint64), shares: make(map[string]*share),
	}
}

// Do gives a worker to use: what is written reaches its standard input, and what is read
// comes from its standard output. caller is who the work is for; no caller has all workers
// while another waits.
//
// If use returns an error, or ctx is done, the worker ends. If the worker ended by itself,
// the error is an [*Ended].
func (p *Pool) Do(ctx context.Context, caller string, use func(io.ReadWriter) error) error {
	own := p.share(caller)
	defer p.unshare(caller, own)
	if err := p.slots.Enter(ctx, &own.Share); err != nil {
		return err
	}
	defer p.slots.Leave(&own.Share)
	w, err := p.take()
	if err != nil {
		return err
	}
	watch := context.AfterFunc(ctx, w.kill)
	err = use(w)
	if !watch() {
		p.end(w, EndCanceled)
		return ctx.Err()
	}
	if err != nil {
		return p.fail(w, err)
	}
	p.give(w)
	return nil
}

// Running is how many workers have work now.
func (p *Pool) Running() int { return p.slots.Running() }

// Close ends the idle workers, and lets the others end with their work.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		p.end(w, "")
	}
}

func (p *Pool) share(caller string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[caller]
	if s == nil {
		s = new(share)
		p.shares[caller] = s
	}
	s.users++
	return s
}

func (p *Pool) unshare(caller string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.shares, caller)
	}
}

// take returns an idle worker, or starts one. An idle worker may have ended: if the machine is short of memory, the
// kernel ends workers first.
func (p *Pool) take() (*process, error) {
	for {
		w, err := p.takeIdle()
		switch {
		case err != nil:
			return nil, err
		case w == nil:
			return p.start()
		case !gone(w.command.Process.Pid):
			return w, nil
		}
		p.end(w, "")
	}
}

// takeIdle returns an idle worker, or nil.
func (p *Pool) takeIdle() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	last := len(p.idle) - 1
	if last < 0 {
		return nil, nil
	}
	w := p.idle[last]
	p.idle = p.idle[:last]
	return w, nil
}

// start starts a worker.
func (p *Pool) start() (*process, error) {
	w, err := start(p.command)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed = failedStart{err, time.Now()}
		return nil, err
	}
	p.started++
	p.alive[w] = struct{}{}
	return w, nil
}

// end ends a worker, and counts it under a reason, if there is one.
func (p *Pool) end(w *process, why Reason) {
	w.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, w)
	if why != "" {
		p.ended[why]++
	}
}

// fail ends a worker after the error err of its work. It returns why the worker ended, if it
// did so by itself, else err.
func (p *Pool) fail(w *process, err error) error {
	err = w.failed(err)
	p.end(w, reasonOf(err))
	if errors.Is(err, ErrConfined) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failed = failedStart{err, time.Now()}
	}
	return err
}

// give takes back a worker whose work is done.
func (p *Pool) give(w *process) {
	usedUp := usedUp(w.command.Process.Pid)
	p.mu.Lock()
	p.failed = failedStart{}
	if !p.closed && !usedUp {
		p.idle = append(p.idle, w)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.end(w, "")
}
