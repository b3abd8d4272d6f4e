package ingest

import (
	"context"
	"errors"
	"sync"
)

// errNoRoot ends the wait for a root that will not come. The reason for that
// is on its way through the pipeline, ahead of this one.
var errNoRoot = errors.New("ingest: the root of an earlier block failed")

// rootedBlock is the number of the last block whose state root is known.
type rootedBlock struct {
	mu      sync.Mutex
	number  uint64        // guarded by mu
	failed  bool          // guarded by mu: there will be no more
	changed chan struct{} // guarded by mu; closed when number or failed changes
}

func newRootedBlock(number uint64) *rootedBlock {
	return &rootedBlock{number: number, changed: make(chan struct{})}
}

func (r *rootedBlock) set(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number = number
	r.wake()
}

func (r *rootedBlock) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.wake()
}

// wake is called with mu held.
func (r *rootedBlock) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait returns when the root of block number is known.
func (r *rootedBlock) wait(ctx context.Context, number uint64) error {
	for {
		r.mu.Lock()
		known, failed, changed := r.number >= number, r.failed, r.changed
		r.mu.Unlock()
		switch {
		case known:
			return nil
		case failed:
			return errNoRoot
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
