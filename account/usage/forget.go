package usage

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"ashlar/account"
)

// forgotten is the ID under which calls with keys of deleted accounts are counted until their
// hour is added up: they remain in the sums of all keys.
var forgotten account.KeyID

// unknownTime is how long usage is kept whose key is not known: in a store that several
// processes write, the key may be new.
const unknownTime = 24 // hours

// Forget implements [account.Belongings]: it durably removes the usage of keys, which must be
// rejected from now on. Counts that other processes have not added up yet are removed by
// [Usage.Clean].
func (u *Usage) Forget(ctx context.Context, _ account.ID, keys []account.KeyID) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	u.collect()
	u.forgetCounts(keys)
	newest := u.presentHour().period()
	for _, key := range keys {
		for back := range min(u.periods(), newest+1) {
			if err := u.store.Drop(ctx, hours, hourPartition(key, newest-back)); err != nil {
				return fmt.Errorf("usage: %w", err)
			}
		}
	}
	if err := u.store.Sync(ctx); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

// periods returns how many partitions of a key may have rows.
func (u *Usage) periods() uint32 { return uint32(u.config.Keep*24/periodHours + 2) }

// forgetCounts removes keys from the counts in memory, except from a row that may have been
// written: it is written again as it was.
func (u *Usage) forgetCounts(keys []account.KeyID) {
	u.metering.Lock()
	for _, key := range keys {
		delete(u.meters, key)
	}
	u.metering.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range keys {
		moveToForgotten(u.pending, key)
		delete(u.last, key)
		delete(u.looked, key)
		for _, o := range u.open {
			moveToForgotten(o.keys, key)
			if at, ok := o.last[key]; ok {
				o.last[forgotten] = later(o.last[forgotten], at)
				delete(o.last, key)
			}
		}
		u.minutes.forget(key)
	}
}

func moveToForgotten(all map[account.KeyID]calls, key account.KeyID) {
	if counted := all[key]; counted != nil {
		delete(all, key)
		addTo(all, forgotten, counted)
	}
}

// Clean deletes usage older than the retention time, and that of keys that are not known any
// more.
func (u *Usage) Clean(ctx context.Context) error {
	now := u.config.Now()
	oldest := hourOf(now.Add(-time.Duration(u.config.Keep) * 24 * time.Hour)).period()
	newest := make(map[[12]byte]hour) // of each partition
	for row, err := range u.store.Walk(ctx, hours, 0) {
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		if len(row.Partition) != 12 {
			return fmt.Errorf("usage: table %s: a partition of %d bytes, expected 12", hours.Name, len(row.Partition))
		}
		p := [12]byte(row.Partition)
		newest[p] = max(newest[p], hourOfSort(row.Sort))
	}
	known := func(account.KeyID) bool { return true }
	if u.config.Known != nil {
		all := u.config.Known() // after the rows, so that their keys are known
		known = func(id account.KeyID) bool { return all[id] || id == account.KeyID{} }
	}
	for p, last := range newest {
		if binary.BigEndian.Uint32(p[8:]) >= oldest && (known(account.KeyID(p[:8])) || last+unknownTime >= hourOf(now)) {
			continue
		}
		if err := u.store.Drop(ctx, hours, p[:]); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
	}
	return nil
}
