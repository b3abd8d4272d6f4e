package account

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"ashlar/kv"
)

// announcements tell other processes of a shared store that something has changed: each is a new, random
// value of the pointer `changes`. A change has one in its own batch. If that write fails, the change may
// have been made without it, or be made later, so another one follows. This one is written to a store
// of one process, too: once that is done, no failed change is made any more, and the process reads what
// there is. It is safe for concurrent use.
type announcements struct {
	mu        sync.Mutex
	failed    uint64 // guarded by mu: changes that have failed
	announced uint64 // guarded by mu: how many of failed were announced since
	latest    string // guarded by mu: the value that announces latestOf of failed
	latestOf  uint64 // guarded by mu
}

// fail notes that a change has failed.
func (a *announcements) fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
}

// any reports whether a change has ever failed.
func (a *announcements) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed > 0
}

// due returns the value that announces all changes that have failed, and how many these are; no value if
// there are none to announce. An attempt that is repeated has the same value: the first may have been
// applied, and each new value makes all processes read everything.
func (a *announcements) due() (value string, of uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == a.announced {
		return "", 0
	}
	if a.latestOf != a.failed {
		a.latest, a.latestOf = rand.Text(), a.failed
	}
	return a.latest, a.failed
}

// done notes that a number of failed changes was announced.
func (a *announcements) done(of uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.announced = max(a.announced, of)
}

// announce adds to a batch what tells other processes of its change.
func (r *rows) announce(b kv.Batch) {
	if r.shared {
		b.SetPointer(pointerChanges, []byte(rand.Text()))
	}
}

// announceFailed announces the changes of this process that have failed, if there are any.
func (r *rows) announceFailed(ctx context.Context) error {
	value, of := r.announcements.due()
	if of == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, restrictionTime)
	defer cancel()
	b := r.store.NewBatch()
	b.SetPointer(pointerChanges, []byte(value))
	err := r.store.Write(ctx, b)
	if err == nil {
		err = r.store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("account: settle an earlier change, which failed and may be made all the same: %w", err)
	}
	r.announcements.done(of)
	return nil
}
