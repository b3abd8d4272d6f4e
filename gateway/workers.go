package gateway

import "sync"

// workers runs functions in goroutines that it uses again. A new goroutine has a small stack,
// which is copied several times while a method such as eth_call makes it grow; that can cost
// more than a look-up. The goroutines that ended last run first, and those that nothing needed
// for a while end. The zero value is ready to use.
type workers struct {
	running sync.WaitGroup

	mu     sync.Mutex
	idle   []chan func() // guarded by mu; in the order in which they became idle
	spare  int           // guarded by mu: of idle, not needed since the last trim
	closed bool          // guarded by mu
}

// run runs a function in a goroutine. It does not wait.
func (w *workers) run(f func()) {
	w.mu.Lock()
	var next chan func()
	if last := len(w.idle) - 1; last >= 0 {
		next, w.idle = w.idle[last], w.idle[:last]
		w.spare = min(w.spare, last)
	}
	w.mu.Unlock()
	if next != nil {
		next <- f // never waits: its buffer is empty
		return
	}
	w.running.Go(func() {
		next := make(chan func(), 1)
		for ok := true; ok; f, ok = <-next {
			f()
			f = nil // what it refers to is not needed any more
			if !w.rest(next) {
				return
			}
		}
	})
}

// rest makes a worker idle. It returns false if the worker must end.
func (w *workers) rest(next chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.idle = append(w.idle, next)
	}
	return !w.closed
}

// trim ends the workers that nothing has needed since the last call.
func (w *workers) trim() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(w.spare)
	w.spare = len(w.idle)
}

// close ends all workers and waits for them. Functions that are passed to run later run in
// goroutines of their own.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	w.end(len(w.idle))
	w.mu.Unlock()
	w.running.Wait()
}

// end ends the n workers that became idle first. w.mu must be held.
func (w *workers) end(n int) {
	for _, next := range w.idle[:n] {
		close(next)
	}
	w.idle, w.spare = append(w.idle[:0], w.idle[n:]...), 0
}
