package worker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"time"
)

// Reason is why a worker ended in the middle of its work, as a label of metrics.
type Reason string

// The reasons for the end of a worker.
const (
	EndCanceled Reason = "canceled" // the client left, or the time of its request was over
	EndFailed   Reason = "failed"   // its work failed, such as a script that exceeded its own time
	EndMemory   Reason = "memory"
	EndStack    Reason = "stack"
	EndCrash    Reason = "crash"
	EndConfine  Reason = "confine" // it could not be confined
)

// reasons are all of them, with the errors that work gets.
func reasons() map[Reason]error {
	return map[Reason]error{EndCanceled: nil, EndFailed: nil, EndMemory: ErrMemory, EndStack: ErrStack, EndCrash: ErrCrash, EndConfine: ErrConfined}
}

// reasonOf returns the reason for an error of work.
func reasonOf(err error) Reason {
	for reason, kind := range reasons() {
		if kind != nil && errors.Is(err, kind) {
			return reason
		}
	}
	return EndFailed
}

// Stats describes the workers of a pool.
type Stats struct {
	Started uint64            // since the pool was made
	Ended   map[Reason]uint64 // in the middle of their work; has every reason
	Busy    int
	Idle    int
	Memory  int64 // bytes that they take now; 0 if the system does not say
}

// Stats returns the current statistics.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Started: p.started, Idle: len(p.idle), Busy: len(p.alive) - len(p.idle), Ended: make(map[Reason]uint64)}
	for reason := range reasons() {
		s.Ended[reason] = 0
	}
	maps.Copy(s.Ended, p.ended)
	for w := range p.alive {
		s.Memory += residentBytes(w.command.Process.Pid)
	}
	return s
}

// residentBytes returns the memory that a process takes, as Linux says.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var mapped, resident int64
	if _, err := fmt.Sscan(string(text), &mapped, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// failedStart is a worker that did not start, or could not be confined.
type failedStart struct {
	err error // nil: the last one started
	at  time.Time
}

// retryStart is how long after a failed start the next one is tried to see whether the
// problem is over.
const retryStart = 10 * time.Second

// Problem returns why workers cannot be started, nil if nothing is known against it. It
// starts one now and then while they cannot, so that the problem ends although no work
// comes. A worker that cannot be confined remains a problem until another one did its work.
func (p *Pool) Problem() error {
	p.mu.Lock()
	last := p.failed
	p.mu.Unlock()
	if last.err == nil || errors.Is(last.err, ErrConfined) || time.Since(last.at) < retryStart {
		return last.err
	}
	w, err := p.start()
	if err == nil {
		p.give(w)
	}
	return err
}
