package backup

import (
	"sync"
	"sync/atomic"
	"time"
)

// Progress says how far a backup or a restore is.
type Progress struct {
	total atomic.Int64
	done  atomic.Int64 // bytes of finished files
	moved atomic.Int64 // bytes that went to or came from the target

	mu    sync.Mutex
	store string    // guarded by mu
	since time.Time // guarded by mu; zero before the beginning and after the end
}

func (p *Progress) begin(total int64) {
	p.total.Store(total)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

func (p *Progress) at(store string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = store
}

func (p *Progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// Now returns the store that is copied, the bytes that are done, those of all, and since
// when the task runs: the zero time if it does not.
func (p *Progress) Now() (store string, done, total int64, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store, p.done.Load(), p.total.Load(), p.since
}
