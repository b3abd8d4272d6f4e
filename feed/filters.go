package feed

import (
	"sync"
	"time"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

// Defaults of [Limits].
const (
	DefaultFilters      = 100
	DefaultFilterUnread = 5 * time.Minute
	DefaultFilterBytes  = 64 << 20
)

// Limits bound the filters of a network. Zero values mean the defaults.
type Limits struct {
	PerCaller int           // filters of one caller: an account, or a key without one
	Unread    time.Duration // after which a filter expires
	// Bytes limits the memory of all filters together, of which a caller may hold no more
	// than is left, and that of each journal.
	Bytes int
}

// WithDefaults returns the limits with their zero values replaced.
func (l Limits) WithDefaults() Limits {
	if l.PerCaller == 0 {
		l.PerCaller = DefaultFilters
	}
	if l.Unread == 0 {
		l.Unread = DefaultFilterUnread
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultFilterBytes
	}
	return l
}

// Filters are the polled filters of one network. F is the query of a filter, shared by all
// calls that use the filter. Filters may be used from many goroutines at once.
type Filters[F any] struct {
	limits Limits
	now    func() time.Time

	mu        sync.Mutex
	byID      map[string]*filter[F] // guarded by mu
	perCaller map[string]int        // guarded by mu
	held      *limit.Ledger
}

type filter[F any] struct {
	caller string
	query  F
	bytes  int
	read   time.Time // last
}

// NewFilters makes an empty set. limits has its defaults set; now returns the time.
func NewFilters[F any](limits Limits, now func() time.Time) *Filters[F] {
	return &Filters[F]{limits: limits, now: now, byID: make(map[string]*filter[F]), perCaller: make(map[string]int), held: limit.NewLedger(limits.Bytes)}
}

// Add adds a filter of a caller whose query takes that many bytes, and returns its ID. It
// returns an [*jsonrpc.Error] if a limit is reached.
func (f *Filters[F]) Add(caller string, query F, bytes int) (id string, err error) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.perCaller[caller] >= f.limits.PerCaller {
		f.expire(now)
	}
	if f.perCaller[caller] >= f.limits.PerCaller {
		return "", jsonrpc.Errorf(jsonrpc.CodeLimitExceeded, "too many filters: expected at most %d of one account, or of a key without one", f.limits.PerCaller)
	}
	if !f.take(caller, bytes, now) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many filters: expected fewer addresses and topics in them, or try again later"}
	}
	id = jsonrpc.NewID()
	f.byID[id] = &filter[F]{caller: caller, query: query, bytes: bytes, read: now}
	f.perCaller[caller]++
	return id, nil
}

// take reserves the bytes of a caller's filter, if need be after removing filters that
// have expired. mu is held.
func (f *Filters[F]) take(caller string, bytes int, now time.Time) bool {
	if f.held.Take(caller, bytes) {
		return true
	}
	f.expire(now)
	return f.held.Take(caller, bytes)
}

// Use returns the query of a caller's filter, and keeps the filter from expiring. It
// returns false if the caller has no such filter.
func (f *Filters[F]) Use(caller, id string) (query F, ok bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.byID[id]
	if found == nil || found.caller != caller || f.expired(found, now) {
		return query, false
	}
	found.read = now
	return found.query, true
}

// Remove removes a caller's filter, and reports whether there was one.
func (f *Filters[F]) Remove(caller, id string) bool {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.byID[id]
	if found == nil || found.caller != caller {
		return false
	}
	f.remove(id, found)
	return !f.expired(found, now)
}

// Expire removes expired filters, and returns how many are left.
func (f *Filters[F]) Expire() (left int) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	return len(f.byID)
}

// All returns the queries of all filters that have not expired, in no particular order.
func (f *Filters[F]) All() []F {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]F, 0, len(f.byID))
	for _, one := range f.byID {
		if !f.expired(one, now) {
			all = append(all, one.query)
		}
	}
	return all
}

// Clear removes all filters.
func (f *Filters[F]) Clear() {
	f.RemoveFunc(func(F) bool { return true })
}

// RemoveFunc removes the filters whose query matches.
func (f *Filters[F]) RemoveFunc(matches func(query F) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, one := range f.byID {
		if matches(one.query) {
			f.remove(id, one)
		}
	}
}

func (f *Filters[F]) expired(one *filter[F], now time.Time) bool {
	return now.Sub(one.read) >= f.limits.Unread
}

// expire removes expired filters. mu is held.
func (f *Filters[F]) expire(now time.Time) {
	for id, one := range f.byID {
		if f.expired(one, now) {
			f.remove(id, one)
		}
	}
}

// remove removes a filter. mu is held.
func (f *Filters[F]) remove(id string, one *filter[F]) {
	delete(f.byID, id)
	f.held.Give(one.caller, one.bytes)
	if f.perCaller[one.caller]--; f.perCaller[one.caller] == 0 {
		delete(f.perCaller, one.caller)
	}
}
