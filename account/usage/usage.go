// Package usage counts what is done with API keys: calls, errors, credits and how long
// calls took, by key, network, method and hour.
//
// Counting takes a few atomic additions and waits for nobody ([Meter]). What was counted
// is written to the store every few seconds, and when the process ends; a crash loses
// what was counted since. Hours that are over are added up in a row for each key, and
// are kept for a number of days. In memory are counters for each key and method that has
// been used since the start, and the sums of the present hour.
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

// DefaultKeep is for how many days usage is kept where nothing else is said.
const DefaultKeep = 90

const (
	flushTime = 5 * time.Second
	cleanTime = 12 * time.Hour
	// lastFlushTime is how long the last flush may take.
	lastFlushTime = 10 * time.Second
)

// Config is how usage is kept.
type Config struct {
	Keep int              // days; 0: DefaultKeep
	Node uint16           // tells processes apart that have one store
	Now  func() time.Time // nil: time.Now
}

// Usage is what is done with the keys of a store. It may be used from many goroutines at
// once.
type Usage struct {
	store  kv.Store
	config Config

	naming sync.Mutex
	names  []series          // guarded by naming; only added to
	byName map[series]Series // guarded by naming

	metering sync.Mutex
	meters   map[account.KeyID]*Meter // guarded by metering

	flushing sync.Mutex              // held while something is written
	mu       sync.RWMutex            // guards what follows; all but flushed and last are changed only while flushing is held too
	pending  map[account.KeyID]calls // taken from the meters and not written yet
	present  hour                    // that things are counted in; it never goes back
	flushed  uint64                  // Unix milliseconds of the last flush, which no other has
	open     map[hour]*openHour      // that are not added up yet
	last     map[account.KeyID]time.Time
}

// openHour is what was flushed in an hour.
type openHour struct {
	first uint64 // Unix milliseconds of the first flush
	keys  map[account.KeyID]calls
	last  map[account.KeyID]time.Time
}

// Open reads what was flushed and not added up. The store must stay open as long as the
// Usage is used.
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
		open: make(map[hour]*openHour), last: make(map[account.KeyID]time.Time),
	}
	for row, err := range store.Walk(ctx, flushes) {
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
	}
	return u, nil
}

// Series returns the number of a method of a network, the same for the same ones. The
// method is empty for what names none.
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

// Meter returns the meter of a key, the same for the same key.
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

// Run flushes and cleans up until ctx is done, and flushes once more then: nothing must
// be counted any more when ctx is done.
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
				slog.Error("usage is not written, and is tried again", "error", err)
			}
		case <-clean.C:
			u.tidy(ctx)
		}
	}
}

func (u *Usage) tidy(ctx context.Context) {
	if err := u.Clean(ctx); err != nil && ctx.Err() == nil {
		slog.Error("old usage could not be dropped", "error", err)
	}
}

// Flush makes what was counted durable, and adds up hours that are over. What it could
// not write it writes the next time.
func (u *Usage) Flush(ctx context.Context) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	u.collect()
	if err := u.writePending(ctx); err != nil {
		return err
	}
	// Only now: what was counted until here is taken for the hour that was.
	u.mu.Lock()
	u.present = max(u.present, hourOf(u.config.Now()))
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

// collect takes what was counted from the meters.
func (u *Usage) collect() {
	u.metering.Lock()
	meters := maps.Clone(u.meters)
	u.metering.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, m := range meters {
		taken := make(calls)
		for s, n := range m.take() {
			taken[u.name(s)] = n
		}
		if len(taken) > 0 {
			addTo(u.pending, id, taken)
		}
	}
}

// name is what a Series stands for.
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

// writePending makes what is pending durable.
func (u *Usage) writePending(ctx context.Context) error {
	if len(u.pending) == 0 {
		return nil
	}
	u.mu.Lock()
	at := max(u.flushed+1, u.milliseconds())
	u.flushed = at            // even if that fails: it may have been written
	u.openHour(u.present, at) // before anything of it can be read in the store
	u.mu.Unlock()
	b := u.store.NewBatch()
	b.Put(flushes, flushPartition(u.config.Node, u.present), at, appendFlush(nil, u.pending))
	if err := u.store.Write(ctx, b); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Sync(ctx); err != nil {
		slog.Warn("usage may be counted twice or not at all", "error", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keep(u.present, at, u.pending)
	u.pending = make(map[account.KeyID]calls)
	return nil
}

// keep takes in what was flushed.
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

// openHour returns what was flushed in an hour, the first time at a time.
func (u *Usage) openHour(h hour, at uint64) *openHour {
	o := u.open[h]
	if o == nil {
		o = &openHour{first: at, keys: make(map[account.KeyID]calls), last: make(map[account.KeyID]time.Time)}
		u.open[h] = o
	}
	o.first = min(o.first, at)
	return o
}

// milliseconds is the time, as flushes are numbered.
func (u *Usage) milliseconds() uint64 { return uint64(max(0, u.config.Now().UnixMilli())) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addUp writes the sums of an hour that is over, and drops what they are made of. Should
// that end in between, the same rows are written again: nothing is flushed for the
// hour any more.
func (u *Usage) addUp(ctx context.Context, h hour, o *openHour) error {
	if len(o.keys) == 0 { // its only flush failed
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

// Clean drops what is older than what is kept.
func (u *Usage) Clean(ctx context.Context) error {
	oldest := hourOf(u.config.Now().Add(-time.Duration(u.config.Keep) * 24 * time.Hour)).period()
	var previous []byte
	var over [][]byte
	for row, err := range u.store.Walk(ctx, hours) {
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

// LastUsed is when a key was last used, to within some seconds; zero if it was not, or
// not within the time that usage is kept.
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
