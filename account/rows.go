package account

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ashlar/kv"
	"ashlar/retry"
)

// rows writes the revisions in a store of accounts.
//
// A change that grants something is durable before it takes effect. A restriction, such as
// revoking a key, takes effect first: a full or failed disk must not keep a leaked key
// alive. If the store refuses the restriction, rows keeps it and tries again until it is
// durable.
type rows struct {
	store  kv.Store
	now    func() time.Time
	shared bool          // other processes write to the store too
	again  *retry.Task   // nil: a refused restriction is an error, since nothing will try again
	wake   chan struct{} // holds a value when unsaved has grown

	announcements announcements

	mu      sync.Mutex
	unsaved map[place]unsavedRow // guarded by mu; the newest revision of each partition
	tried   map[place]uint64     // guarded by mu; the newest revision that was not stored
	// unreadable describes what is disabled because its newest row cannot be read. Guarded
	// by mu.
	unreadable map[place]string
}

// place names a partition of a table.
type place struct {
	table     *kv.Table
	partition string
}

// unsavedRow is a revision that is in effect but not durable.
type unsavedRow struct {
	number uint64
	record any
	what   string // names it in the log, such as "key 0102030405060708"
	did    string // what the change does, for the audit log, such as "revoke"
	of     ID     // the account that is changed or owns the key; zero: none
	audit  []audited
}

// order says when a change takes effect.
type order bool

const (
	onceDurable order = false // when it is durable; if it cannot be stored, nothing changes
	atOnce      order = true  // at once, even if it cannot be stored yet
)

func newRows(store kv.Store, now func() time.Time, shared bool, again *retry.Task) *rows {
	return &rows{store: store, now: now, shared: shared, again: again, wake: make(chan struct{}, 1), unsaved: make(map[place]unsavedRow), tried: make(map[place]uint64), unreadable: make(map[place]string)}
}

// write writes one revision durably, with its entries of the audit log and those of the unsaved
// revision that it replaces.
func (r *rows) write(ctx context.Context, at place, number uint64, record any, audit []audited) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	b := r.store.NewBatch()
	b.Put(at.table, []byte(at.partition), number, append([]byte{formRecord}, raw...))
	r.announce(b)
	for _, entry := range append(r.replaced(at, number), audit...) {
		if err := putAuditAt(b, auditDay(entry.day), entry.sort, entry.record); err != nil {
			return err
		}
	}
	if err = r.store.Write(ctx, b); err == nil {
		err = r.store.Sync(ctx)
	}
	if err != nil {
		r.announcements.fail()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if number != lastRevision { // which may be tried again, since it is always the same
			r.tried[at] = max(r.tried[at], number)
		}
		return err
	}
	if u, ok := r.unsaved[at]; ok && u.number <= number {
		delete(r.unsaved, at)
	}
	delete(r.unreadable, at)
	return nil
}

// replaced returns the entries of the audit log that are kept with the unsaved revision that a
// revision replaces.
func (r *rows) replaced(at place, number uint64) []audited {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := r.unsaved[at]; ok && u.number < number {
		return slices.Clip(u.audit)
	}
	return nil
}

// disable records that the newest row of something cannot be read. Only that one thing is
// disabled: it must not keep a whole service from starting. A row that is read again is logged once.
func (r *rows) disable(at place, what string, number uint64, cause error) {
	text := fmt.Sprintf("%s: table %s, revision %d: %v", what, at.table.Name, number, cause)
	r.mu.Lock()
	known := r.unreadable[at] == text
	r.unreadable[at] = text
	r.mu.Unlock()
	if !known {
		slog.Error("disabled because it cannot be read", "what", what, "table", at.table.Name, "revision", number, "error", cause)
	}
}

// enable reverses disable: the newest row can be read, such as one that another process has written since.
func (r *rows) enable(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unreadable, at)
}

// forget ends what is known of a partition that was dropped.
func (r *rows) forget(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unsaved, at)
	delete(r.tried, at)
	delete(r.unreadable, at)
}

// unreadableTexts lists what is disabled because it cannot be read, sorted.
func (r *rows) unreadableTexts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.unreadable))
}

// next returns the number of the revision after current. It skips one that was not stored,
// because the store may still complete that write, and a row never changes.
func (r *rows) next(at place, current uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := max(current, r.tried[at])
	if r.shared {
		return sharedNumber(last)
	}
	return last + 1
}

// writeTime bounds how long a change of a shared store waits to be written: too few nodes may answer, and other changes
// of this process wait meanwhile. What is tried again waits only until the lock of changes is abandoned, because another
// process may then begin a change with the same row.
func (r *rows) writeTime(o order) time.Duration {
	if o == atOnce && r.again != nil {
		return abandoned
	}
	return lockTime
}

// put stores a revision that keep makes current in memory, in the given order.
func (r *rows) put(ctx context.Context, o order, at place, row unsavedRow, keep func()) error {
	by := actorOf(ctx)
	row.audit = []audited{newAudited(r.now(), auditRecord{By: by.Account, Address: by.Address, Via: by.Via, Did: row.did, What: row.what, Of: row.of, Revision: row.number})}
	if o == atOnce {
		ctx = context.WithoutCancel(ctx) // a client that disconnects does not interrupt a restriction
	}
	if r.shared {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.writeTime(o))
		defer cancel()
	}
	if o == onceDurable {
		err := r.write(ctx, at, row.number, row.record, row.audit)
		if err == nil {
			keep()
		}
		return err
	}
	keep()
	err := r.write(ctx, at, row.number, row.record, row.audit)
	if err == nil || r.again == nil {
		return err
	}
	row.audit = append(r.replaced(at, row.number), row.audit...)
	r.mu.Lock()
	r.unsaved[at] = row
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // it is awake already
	}
	return nil
}

// isUnsaved reports whether the current revision of a partition is not durable.
func (r *rows) isUnsaved(at place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.unsaved[at]
	return ok
}

// run writes unsaved rows until ctx is done.
func (r *rows) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
		if err := r.again.Keep(ctx, r.save); err != nil {
			return err
		}
	}
}

// save writes all unsaved rows.
func (r *rows) save(ctx context.Context) error {
	r.mu.Lock()
	all := maps.Clone(r.unsaved)
	r.mu.Unlock()
	for at, row := range all {
		if err := r.write(ctx, at, row.number, row.record, row.audit); err != nil {
			return err
		}
	}
	r.again.Succeeded()
	return nil
}

// Unsaved describes restrictions that are in effect but not durable: a crash would undo
// them. The service tries to store them until it succeeds.
type Unsaved struct {
	Restrictions int       `json:"restrictions"`
	Names        []string  `json:"names"`          // of the keys, accounts and invitations, sorted
	Since        time.Time `json:"since,omitzero"` // of the first failure; zero if the first attempt has not ended
	Why          string    `json:"why,omitempty"`
}

// String describes u for people.
func (u *Unsaved) String() string {
	text := fmt.Sprintf("in effect, but not yet durable: restrictions of %s", strings.Join(u.Names, ", "))
	if u.Why != "" {
		text += ": " + u.Why
	}
	return text
}

// unsavedState returns the unsaved restrictions, nil if there are none.
func (r *rows) unsavedState() *Unsaved {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsaved) == 0 {
		return nil
	}
	u := &Unsaved{Restrictions: len(r.unsaved)}
	for _, row := range r.unsaved {
		u.Names = append(u.Names, row.what)
	}
	slices.Sort(u.Names)
	if stop := r.again.Stopped(); stop != nil {
		u.Since, u.Why = stop.Since.UTC(), stop.Err.Error()
	}
	return u
}
