// Package usage counts what API keys are used for: calls, errors, credits and latencies by
// key, network, method and hour.
//
// Counting a call takes a few atomic additions ([Meter]). Counts are
// flushed to the store every few seconds and on exit; a crash loses the counts since the
// last flush. After an hour has passed, its flushes are summed in one row per key, which is
// kept for a number of days. In memory are the counters of each key and method used since
// the start, the sums of hours that are still open, and those of the minutes of the last hour.
package usage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// DefaultKeep is the default number of days of usage history to keep.
const DefaultKeep = 90

const (
	flushTime = 5 * time.Second
	cleanTime = 12 * time.Hour
	// lastFlushTime is how long the flush on exit may take.
	lastFlushTime = 10 * time.Second
)

// Config configures a Usage.
type Config struct {
	Keep int              // days of history; 0: DefaultKeep
	Node uint16           // distinguishes processes that share a store
	Now  func() time.Time // nil: time.Now
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
	mu       sync.RWMutex            // guards the fields below; all but flushed, last and minutes are changed only while flushing is held as well
	pending  map[account.KeyID]calls // taken from the meters, not yet written
	present  hour                    // to which new counts belong, see turn
	flushed  uint64                  // Unix milliseconds of the last flush; unique per flush
	open     map[hour]*openHour      // not yet summed
	last     map[account.KeyID]time.Time
	minutes  minutes
}

// openHour holds the flushed counts of an hour.
type openHour struct {
	first uint64 // Unix milliseconds of the first flush
	keys  map[account.KeyID]calls
	last  map[account.KeyID]time.Time
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
		open: make(map[hour]*openHour), last: make(map[account.KeyID]time.Time), minutes: newMinutes(),
	}
	var recent []flushed
	for row, err := range store.Walk(ctx, flushes, 0) {
		if err != nil {
			return nil, fmt.Errorf("usage: %w", err)
		}
		if len(row.Partition) != 6 {
			return nil, fmt.Errorf("usage: table %s: a partition of %d bytes, expected 6", flushes.Name, len(row.Partition))
		}
		if binary.BigEndian.Uint16(row.Partition) != config.Node {
			continue
		}
		counted, err := decodeFlush(row.Value)
		if err != nil {
			return nil, fmt.Errorf("usage: table %s: row %d: %w", flushes.Name, row.Sort, err)
		}
		u.keep(hour(binary.BigEndian.Uint32(row.Partition[2:])), row.Sort, counted)
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
	flush, clean := time.NewTicker(flushTime), time.NewTicker(cleanTime)
	defer flush.Stop()
	defer clean.Stop()
	u.tidy(ctx)
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTime)
			defer cancel()
			return u.Flush(last)
		case <-flush.C:
			if err := u.Flush(ctx); err != nil && ctx.Err() == nil {
				slog.Error("usage not written, will retry", "error", err)
			}
		case <-clean.C:
			u.tidy(ctx)
		}
	}
}

func (u *Usage) tidy(ctx context.Context) {
	if err := u.Clean(ctx); err != nil && ctx.Err() == nil {
		slog.Error("delete old usage", "error", err)
	}
}

// Flush writes the current counts durably, and sums hours that have passed. Counts that it
// fails to write are kept for the next flush.
func (u *Usage) Flush(ctx context.Context) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	u.collect()
	if err := u.writePending(ctx); err != nil {
		return err
	}
	// After collect: counts up to now belong to the previous hour.
	u.mu.Lock()
	u.turn(hourOf(u.config.Now()))
	u.mu.Unlock()
	for h, o := range u.open {
		if h < u.present {
			if err := u.addUp(ctx, h, o); err != nil {
				return err
			}
		}
	}
	return nil
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

// writePending writes pending durably.
func (u *Usage) writePending(ctx context.Context) error {
	if len(u.pending) == 0 {
		return nil
	}
	u.mu.Lock()
	at := max(u.flushed+1, u.milliseconds())
	u.flushed = at            // even if the write fails: the row may exist
	u.openHour(u.present, at) // before the row becomes readable
	u.mu.Unlock()
	b := u.store.NewBatch()
	b.Put(flushes, flushPartition(u.config.Node, u.present), at, appendFlush(nil, u.pending))
	if err := u.store.Write(ctx, b); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Sync(ctx); err != nil {
		slog.Warn("usage may be lost or counted twice", "error", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keep(u.present, at, u.pending)
	u.pending = make(map[account.KeyID]calls)
	return nil
}

// keep adds flushed counts to the sums in memory.
func (u *Usage) keep(h hour, at uint64, counted map[account.KeyID]calls) {
	u.flushed = max(u.flushed, at)
	u.present = max(u.present, h)
	o := u.openHour(h, at)
	when := time.UnixMilli(int64(min(at, math.MaxInt64))).UTC().Truncate(time.Second)
	for id, c := range counted {
		addTo(o.keys, id, c)
		o.last[id] = later(o.last[id], when)
		u.last[id] = later(u.last[id], when)
	}
}

// openHour returns the sums of an hour; at is used as its first flush if it has none yet.
func (u *Usage) openHour(h hour, at uint64) *openHour {
	o := u.open[h]
	if o == nil {
		o = &openHour{first: at, keys: make(map[account.KeyID]calls), last: make(map[account.KeyID]time.Time)}
		u.open[h] = o
	}
	o.first = min(o.first, at)
	return o
}

// milliseconds returns the current time as used to number flushes.
func (u *Usage) milliseconds() uint64 { return uint64(max(0, u.config.Now().UnixMilli())) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addUp writes the sums of an hour that has passed, then deletes its flushes. It can be
// repeated after an interruption: it then writes the same rows, since nothing is flushed to
// the hour any more.
func (u *Usage) addUp(ctx context.Context, h hour, o *openHour) error {
	if len(o.keys) == 0 { // the only flush failed
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.open, h)
		return nil
	}
	b := u.store.NewBatch()
	sort, all := hourSort(h, u.config.Node, o.first), make(calls)
	var latest time.Time
	for id, c := range o.keys {
		all.add(c)
		latest = later(latest, o.last[id])
		b.Put(hours, hourPartition(id, h.period()), sort, appendHour(nil, o.last[id], c))
	}
	b.Put(hours, hourPartition(account.KeyID{}, h.period()), sort, appendHour(nil, latest, all))
	if err := u.store.Write(ctx, b); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Sync(ctx); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Drop(ctx, flushes, flushPartition(u.config.Node, h)); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, h)
	return nil
}

// Clean deletes usage older than the retention time.
func (u *Usage) Clean(ctx context.Context) error {
	oldest := hourOf(u.config.Now().Add(-time.Duration(u.config.Keep) * 24 * time.Hour)).period()
	var previous []byte
	var over [][]byte
	for row, err := range u.store.Walk(ctx, hours, 0) {
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		if len(row.Partition) != 12 {
			return fmt.Errorf("usage: table %s: a partition of %d bytes, expected 12", hours.Name, len(row.Partition))
		}
		if string(previous) == string(row.Partition) {
			continue
		}
		previous = append(previous[:0], row.Partition...)
		if binary.BigEndian.Uint32(row.Partition[8:]) < oldest {
			over = append(over, append([]byte(nil), row.Partition...))
		}
	}
	for _, partition := range over {
		if err := u.store.Drop(ctx, hours, partition); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
	}
	return nil
}

// LastUsed returns when a key was last used, to within some seconds. It is zero if the key
// was not used within the retention time.
func (u *Usage) LastUsed(ctx context.Context, key account.KeyID) (time.Time, error) {
	u.mu.RLock()
	known, ok := u.last[key]
	u.mu.RUnlock()
	if ok {
		return known, nil
	}
	var found time.Time
	newest := u.presentHour().period()
	for back := range uint32(u.config.Keep*24/periodHours + 2) {
		if back > newest {
			break
		}
		value, _, err := u.store.Newest(ctx, hours, hourPartition(key, newest-back), math.MaxUint64, nil)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err == nil {
			found, err = decodeHour(value, func(series, Counts) {})
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("usage: key %s: %w", key, err)
		}
		break
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[key] = later(u.last[key], found)
	return u.last[key], nil
}

func (u *Usage) presentHour() hour {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return max(u.present, hourOf(u.config.Now()))
}
