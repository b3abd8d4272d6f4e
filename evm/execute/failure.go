package execute

import "sync/atomic"

// readFailure keeps the first error of the reads that go-ethereum makes: of the state,
// trie nodes and ancestors. Some of go-ethereum's interfaces return no errors, and it
// ignores some others. So the result or error of a run is meaningless if a read failed, and
// no more is read then: each further read could wait as long as the one that failed.
// It is safe for concurrent use.
type readFailure struct{ first atomic.Pointer[error] }

func (f *readFailure) fail(err error) { f.first.CompareAndSwap(nil, &err) }

func (f *readFailure) failure() error {
	if first := f.first.Load(); first != nil {
		return *first
	}
	return nil
}
