package execute

import "sync"

// readFailure keeps the first error of the reads that go-ethereum makes: of the state,
// trie nodes and ancestors. Some of go-ethereum's interfaces return no errors, and it
// ignores some others. So the result or error of a run is meaningless if a read failed.
// It is safe for concurrent use.
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
