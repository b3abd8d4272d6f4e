package execute

import "sync"

// readFailure keeps the first error of reading what go-ethereum asks for: the state,
// trie nodes, and ancestors. Its interfaces have places without errors, and it goes
// on after some errors that it is told. So what a run gave, and what it failed with,
// says nothing of the block or the call before it is known that nothing failed to
// be read. It may be used from many goroutines at once.
type readFailure struct {
	mu    sync.Mutex
	first error // guarded by mu
}

func (f *readFailure) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

func (f *readFailure) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}
