package usage

import (
	"context"
	"fmt"
	"math"
	"time"

	"ashlar/account"
)

// share is what one process counts in an hour.
type share struct {
	node uint16
	hour hour
}

// flush is a row of flushes.
type flush struct {
	hour hour
	at   uint64
	keys map[account.KeyID]calls
}

// openHour holds the flushed counts of an hour.
type openHour struct {
	first uint64 // Unix milliseconds of the first flush
	keys  map[account.KeyID]calls
	last  map[account.KeyID]time.Time
}

func newOpenHour(at uint64) *openHour {
	return &openHour{first: at, keys: make(map[account.KeyID]calls), last: make(map[account.KeyID]time.Time)}
}

// add adds the counts of a flush.
func (o *openHour) add(at uint64, counted map[account.KeyID]calls) {
	o.first = min(o.first, at)
	when := timeOfFlush(at)
	for id, c := range counted {
		addTo(o.keys, id, c)
		o.last[id] = later(o.last[id], when)
	}
}

func timeOfFlush(at uint64) time.Time {
	return time.UnixMilli(int64(min(at, math.MaxInt64))).UTC().Truncate(time.Second)
}

// keep adds flushed counts to the sums in memory.
func (u *Usage) keep(h hour, at uint64, counted map[account.KeyID]calls) {
	u.flushed = max(u.flushed, at)
	u.present = max(u.present, h)
	u.openHour(h, at).add(at, counted)
	u.use(at, counted)
}

// keepOther adds counts that another process has flushed.
func (u *Usage) keepOther(by share, at uint64, counted map[account.KeyID]calls) {
	if u.others[by] == nil {
		u.others[by] = newOpenHour(at)
	}
	u.others[by].add(at, counted)
	u.use(at, counted)
}

// use records that keys were used.
func (u *Usage) use(at uint64, counted map[account.KeyID]calls) {
	when := timeOfFlush(at)
	for id := range counted {
		u.last[id] = later(u.last[id], when)
	}
}

// openHour returns the sums of an hour; at is used as its first flush if it has none yet.
func (u *Usage) openHour(h hour, at uint64) *openHour {
	o := u.open[h]
	if o == nil {
		o = newOpenHour(at)
		u.open[h] = o
	}
	o.first = min(o.first, at)
	return o
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addUp writes the sums of an hour that has passed, then deletes its flushes. It can be
// repeated after an interruption: it then writes the same rows, since nothing is flushed to
// the hour any more.
func (u *Usage) addUp(ctx context.Context, by share, o *openHour) error {
	if len(o.keys) == 0 { // the only flush failed
		return nil
	}
	b := u.store.NewBatch()
	sort, all := hourSort(by, o.first), make(calls)
	var latest time.Time
	for id, c := range o.keys {
		all.add(c)
		latest = later(latest, o.last[id])
		if id == forgotten {
			continue
		}
		b.Put(hours, hourPartition(id, by.hour.period()), sort, appendHour(nil, o.last[id], c))
	}
	b.Put(hours, hourPartition(account.KeyID{}, by.hour.period()), sort, appendHour(nil, latest, all))
	if err := u.store.Write(ctx, b); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Sync(ctx); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if err := u.store.Drop(ctx, flushes, flushPartition(by)); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

func (u *Usage) presentHour() hour {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return max(u.present, hourOf(u.config.Now()))
}
