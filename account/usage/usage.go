// Package usage counts what API keys are used for: calls, errors, credits and latencies by
// key, network, method and hour.
//
// Counting a call takes a few atomic additions ([Meter]). Counts are
// flushed to the store every few seconds and on exit; a crash loses the counts since the
// last flush. After an hour has passed, its flushes are summed in one row per key, which is
// kept for a number of days. The flushes of a process that has gone are summed by another one
// (abandoned.go). In memory are the counters of each key and method used since
// the start, the sums of hours that are still open, and those of the minutes of the last hour.
package usage

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// DefaultKeep is the default number of days of usage history to keep.
const DefaultKeep = 90

const (
	flushTime = 5 * time.Second
	// flushLimit is how long a flush may take. The next one writes the counts that are left.
	flushLimit = 30 * time.Second
	cleanTime  = 12 * time.Hour
	// lastFlushTime is how long the flush on exit may take.
	lastFlushTime = 10 * time.Second
)

// Config configures a Usage.
type Config struct {
	Keep int    // days of history; 0: DefaultKeep
	Node uint16 // distinguishes processes that share a store
	// Known returns the IDs under which calls are counted now; nil: all. Usage of others is
	// dropped when it is more than a day old.
	Known func() map[account.KeyID]bool
	Now   func() time.Time // nil: time.Now
	// All includes what other processes have flushed before Open and not summed. It is for
	// a process that reads once and counts nothing.
	All bool
}

// Usage records the usage of the keys of a store. It is safe for concurrent use.
type Usage struct {
	store  kv.Store
	config Config

	naming sync.Mutex
	names  []series          // by Series; guarded by naming; append-only
	byName map[series]Series // guarded by naming

	metering sync.Mutex
	meters   map[account.KeyID]*Meter // guarded by metering

	flushing sync.Mutex              // held while the store is written
	mu       sync.RWMutex            // guards the fields below; all but flushed, last, looked and minutes are changed only while flushing is held as well
	pending  map[account.KeyID]calls // taken from the meters, not yet written
	writing  *flush                  // a row that may have been written; nil: none
	present  hour                    // to which new counts belong, see turn
	flushed  uint64                  // Unix milliseconds of the last flush; unique per flush
	open     map[hour]*openHour      // not yet summed
	last     map[account.KeyID]time.Time
	looked   map[account.KeyID]time.Time // when last was compared with the store
	minutes  minutes
	others   map[share]*openHour // not yet summed by other processes, if Config.All is set
}

// Open reads the flushes of hours that are not yet summed. The store must stay open as long
// as the Usage is in use.
func Open(ctx context.Context, store kv.Store, config Config) (*Usage, error) {
	if config.Keep == 0 {
		config.Keep = DefaultKeep
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	u := &Usage{
		store: store, config: config, byName: make(map[series]Series), meters: make(map[account.KeyID]*Meter),
		pending: make(map[account.KeyID]calls), present: hourOf(config.Now()),
		open: make(map[hour]*openHour), last: make(map[account.KeyID]time.Time), looked: make(map[account.KeyID]time.Time), minutes: newMinutes(),
		others: make(map[share]*openHour),
	}
	var recent []flushed
	for row, err := range store.Walk(ctx, flushes, 0) {
		if err != nil {
			return nil, fmt.Errorf("usage: %w", err)
		}
		by, err := shareOf(row.Partition)
		if err != nil {
			return nil, err
		}
		if by.node != config.Node && !config.All {
			continue
		}
		counted, err := decodeFlush(row.Value)
		if err != nil {
			return nil, fmt.Errorf("usage: table %s: row %d: %w", flushes.Name, row.Sort, err)
		}
		if by.node != config.Node {
			u.keepOther(by, row.Sort, counted)
			continue
		}
		u.keep(by.hour, row.Sort, counted)
		if at := minute(row.Sort / 60_000); at >= minuteOf(config.Now())-keptMinutes {
			recent = append(recent, flushed{at, counted})
		}
	}
	u.minutes.restore(recent)
	u.turn(hourOf(config.Now()))
	return u, nil
}

// Series returns the number of a method of a network, always the same for the same
// arguments. The method is empty for calls of unknown methods.
func (u *Usage) Series(network, method string) Series {
	u.naming.Lock()
	defer u.naming.Unlock()
	name := series{network, method}
	s, ok := u.byName[name]
	if !ok {
		s = Series(len(u.names))
		u.names, u.byName[name] = append(u.names, name), s
	}
	return s
}

// Meter returns the meter of a key, always the same for the same key.
func (u *Usage) Meter(key account.KeyID) *Meter {
	if u == nil {
		return nil
	}
	u.metering.Lock()
	defer u.metering.Unlock()
	m := u.meters[key]
	if m == nil {
		m = new(Meter)
		u.meters[key] = m
	}
	return m
}

// Run flushes and cleans up until ctx is done, then flushes once more: callers must have
// stopped counting when ctx is done.
func (u *Usage) Run(ctx context.Context) error {
	flush, clean, take := time.NewTicker(flushTime), time.NewTicker(cleanTime), time.NewTicker(claimTime)
	defer flush.Stop()
	defer clean.Stop()
	defer take.Stop()
	u.tidy(ctx)
	u.takeOver(ctx)
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTime)
			defer cancel()
			return u.Flush(last)
		case <-flush.C:
			limited, cancel := context.WithTimeout(ctx, flushLimit)
			if err := u.Flush(limited); err != nil && ctx.Err() == nil {
				slog.Error("cannot write usage: trying again", "error", err)
			}
			cancel()
		case <-clean.C:
			u.tidy(ctx)
		case <-take.C:
			u.takeOver(ctx)
		}
	}
}

func (u *Usage) tidy(ctx context.Context) {
	if err := u.Clean(ctx); err != nil && ctx.Err() == nil {
		slog.Error("cannot delete old usage: trying again", "error", err)
	}
}

// Flush writes the current counts durably, and sums hours that have passed. Counts that it
// fails to write are kept for the next flush.
func (u *Usage) Flush(ctx context.Context) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	u.collect()
	u.leaveLate(hourOf(u.config.Now()))
	if err := u.writePending(ctx); err != nil {
		return err
	}
	// After collect: counts up to now belong to the previous hour.
	now := hourOf(u.config.Now())
	u.mu.Lock()
	u.turn(now)
	u.mu.Unlock()
	late := false
	for h, o := range u.open {
		if h >= u.present || !ownTime(h, now) {
			late = late || abandoned(h, now)
			continue
		}
		if err := u.addUp(ctx, share{u.config.Node, h}, o); err != nil {
			return err
		}
		u.forget(h)
	}
	if late { // this process was away for hours
		return u.addUpAbandoned(ctx)
	}
	return nil
}

// forget removes an hour that is summed.
func (u *Usage) forget(h hour) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, h)
}

// turn makes now the hour to which new counts belong. A clock that is set back by less than
// an hour leaves it as it is, so that an hour that is being summed gets no more counts. One
// that was ahead by more does not keep new counts in the hour that it showed.
func (u *Usage) turn(now hour) {
	if now > u.present || now+1 < u.present {
		u.present = now
	}
}

// collect moves counts from the meters to pending.
func (u *Usage) collect() {
	u.metering.Lock()
	meters := maps.Clone(u.meters)
	u.metering.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	now := minuteOf(u.config.Now())
	u.minutes.turn(now)
	for id, m := range meters {
		taken := make(calls)
		for s, n := range m.take() {
			taken[u.name(s)] = n
		}
		if len(taken) > 0 {
			addTo(u.pending, id, taken)
			u.minutes.add(now, id, taken)
		}
	}
}

// name returns the network and method of a Series.
func (u *Usage) name(s Series) series {
	u.naming.Lock()
	defer u.naming.Unlock()
	return u.names[s]
}

func addTo(all map[account.KeyID]calls, id account.KeyID, more calls) {
	if all[id] == nil {
		all[id] = make(calls)
	}
	all[id].add(more)
}

// writePending writes pending durably. A row whose write has failed may exist all the same,
// so it is written again as it was, before another one.
func (u *Usage) writePending(ctx context.Context) error {
	for u.writing != nil || len(u.pending) > 0 {
		if u.writing == nil {
			u.mu.Lock()
			at := max(u.flushed+1, u.milliseconds())
			u.flushed = at
			u.openHour(u.present, at) // before the row becomes readable
			u.writing, u.pending = &flush{u.present, at, u.pending}, make(map[account.KeyID]calls)
			u.mu.Unlock()
		}
		w := u.writing
		b := u.store.NewBatch()
		b.Put(flushes, flushPartition(share{u.config.Node, w.hour}), w.at, appendFlush(nil, w.keys))
		if err := u.store.Write(ctx, b); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		if err := u.store.Sync(ctx); err != nil {
			slog.Warn("usage may be lost or counted twice", "error", err)
		}
		u.mu.Lock()
		u.keep(w.hour, w.at, w.keys)
		u.writing = nil
		u.mu.Unlock()
	}
	return nil
}

// milliseconds returns the current time as used to number flushes.
func (u *Usage) milliseconds() uint64 { return uint64(max(0, u.config.Now().UnixMilli())) }
