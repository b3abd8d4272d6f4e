package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// Group selects the dimensions by which usage is grouped.
type Group uint

// Dimensions of a Group; combine them with |.
const (
	ByHour Group = 1 << iota
	ByDay
	ByNetwork
	ByMethod
	ByKey
	ByMinute // of the last hour, and of this process only
)

// Query selects usage.
type Query struct {
	All  bool            // all keys together, including deleted ones; Keys is ignored
	Keys []account.KeyID // empty: none
	From time.Time       // first hour
	To   time.Time       // end, exclusive
	By   Group           // 0: a single sum. ByKey needs Keys
}

// Line is the sum of one group. Fields not grouped by are zero.
type Line struct {
	Time    time.Time     `json:"start,omitzero"` // start of the minute, hour or day, UTC; shadows Counts.Time, the duration of calls
	Key     account.KeyID `json:"key,omitzero"`
	Network string        `json:"network,omitempty"`
	Method  string        `json:"method,omitempty"` // also empty for unknown methods
	Counts
}

// place identifies a group.
type place struct {
	time int64 // Unix seconds; 0 if not grouped by time
	key  account.KeyID
	series
}

// at returns the group that counts belong to; start is that of their hour or minute.
func (q *Query) at(start int64, key account.KeyID, s series) (p place) {
	switch {
	case q.By&(ByHour|ByMinute) != 0:
		p.time = start
	case q.By&ByDay != 0:
		p.time = start / secondsOfDay * secondsOfDay
	}
	if q.By&ByNetwork != 0 {
		p.network = s.network
	}
	if q.By&ByMethod != 0 {
		p.method = s.method
	}
	if q.By&ByKey != 0 {
		p.key = key
	}
	return p
}

// Read returns the usage selected by q, including counts not yet flushed. Lines are ordered
// by time, key, network and method. Groups without calls have no line.
func (u *Usage) Read(ctx context.Context, q Query) ([]Line, error) {
	from, to := hourOf(q.From), hourOf(q.To.Add(time.Hour-1))
	keys := q.Keys
	if q.All {
		keys = []account.KeyID{{}}
	}
	if from >= to {
		return nil, nil
	}
	u.collectNow()
	wanted := func(account.KeyID) bool { return true }
	if !q.All {
		set := make(map[account.KeyID]struct{}, len(keys)) // every key that was used is looked up in it
		for _, key := range keys {
			set[key] = struct{}{}
		}
		wanted = func(key account.KeyID) bool { _, ok := set[key]; return ok }
	}
	sums := make(map[place]*Counts)
	addAt := func(start int64, key account.KeyID, s series, n Counts) {
		p := q.at(start, key, s)
		if sums[p] == nil {
			sums[p] = new(Counts)
		}
		sums[p].Add(n)
	}
	if q.By&ByMinute != 0 {
		if err := u.readMinutes(&q, wanted, addAt); err != nil {
			return nil, err
		}
		return lines(&q, sums), nil
	}
	add := func(h hour, key account.KeyID, s series, n Counts) { addAt(int64(h)*3600, key, s, n) }
	// Hours may be summed while Read runs. Counts that are in memory now are taken from
	// there, and the rows in which they are stored later are skipped.
	seen := u.remembered(q.All, wanted, from, to, add)
	for _, key := range keys {
		if key == (account.KeyID{}) && !q.All {
			continue // the zero ID is not a key
		}
		if err := u.readHours(ctx, key, from, to, seen, add); err != nil {
			return nil, err
		}
	}
	return lines(&q, sums), nil
}

// collectNow collects counts from the meters, unless a flush is doing so.
func (u *Usage) collectNow() {
	if u.flushing.TryLock() {
		u.collect()
		u.flushing.Unlock()
	}
}

// moment is a snapshot of what was in memory.
type moment struct {
	node uint16
	rows map[uint64]bool // sort keys of the rows that the open hours will become
	mark uint64          // every flush after the snapshot is later than this
}

// has reports whether a row's counts were in the snapshot or are newer than it.
func (m *moment) has(sort uint64) bool {
	return m.rows[sort] || nodeOfSort(sort) == m.node && firstOfSort(sort) > m.mark
}

// remembered adds the counts in memory, and returns a snapshot to skip them in the store.
func (u *Usage) remembered(all bool, wanted func(account.KeyID) bool, from, to hour, add func(hour, account.KeyID, series, Counts)) *moment {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flushed = max(u.flushed, u.milliseconds())
	m := &moment{node: u.config.Node, rows: make(map[uint64]bool), mark: u.flushed}
	of := func(h hour, counted map[account.KeyID]calls) {
		if h < from || h >= to {
			return
		}
		for id, c := range counted {
			if !wanted(id) {
				continue
			}
			if all {
				id = account.KeyID{}
			}
			for s, n := range c {
				add(h, id, s, n)
			}
		}
	}
	for h, o := range u.open {
		m.rows[hourSort(share{u.config.Node, h}, o.first)] = true
		of(h, o.keys)
	}
	for by, o := range u.others {
		m.rows[hourSort(by, o.first)] = true
		of(by.hour, o.keys)
	}
	if u.writing != nil {
		of(u.writing.hour, u.writing.keys)
	}
	of(u.present, u.pending)
	return m
}

// readHours adds the stored counts of a key, except for rows that seen covers.
func (u *Usage) readHours(ctx context.Context, key account.KeyID, from, to hour, seen *moment, add func(hour, account.KeyID, series, Counts)) error {
	for period := from.period(); period <= (to - 1).period(); period++ {
		cursor := u.store.Scan(ctx, hours, hourPartition(key, period), uint64(from)<<40, lastSort(to))
		var broken error
		for ok := cursor.Next(); ok && broken == nil; ok = cursor.Next() {
			if seen.has(cursor.Sort()) {
				continue
			}
			h := hourOfSort(cursor.Sort())
			_, broken = decodeHour(cursor.Value(), func(s series, n Counts) { add(h, key, s, n) })
		}
		if err := cmp.Or(broken, cursor.Close()); err != nil {
			return fmt.Errorf("usage: key %s: %w", key, err)
		}
	}
	return nil
}

// lastSort returns the greatest sort key before an hour.
func lastSort(to hour) uint64 {
	if uint64(to) >= 1<<24 {
		return math.MaxUint64
	}
	return uint64(to)<<40 - 1
}

func lines(q *Query, sums map[place]*Counts) []Line {
	var all []Line
	for p, n := range sums {
		l := Line{Key: p.key, Network: p.network, Method: p.method, Counts: *n}
		if q.By&(ByMinute|ByHour|ByDay) != 0 {
			l.Time = time.Unix(p.time, 0).UTC()
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Line) int {
		return cmp.Or(a.Time.Compare(b.Time), slices.Compare(a.Key[:], b.Key[:]), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Method, b.Method))
	})
	return all
}

// Today returns the credits spent with a key since 00:00 UTC, as far as flushed.
func (u *Usage) Today(ctx context.Context, key account.KeyID) (uint64, error) {
	now := u.config.Now().UTC()
	sum, err := u.Read(ctx, Query{Keys: []account.KeyID{key}, From: now.Truncate(24 * time.Hour), To: now.Add(time.Hour)})
	if err != nil || len(sum) == 0 {
		return 0, err
	}
	return sum[0].Credits, nil
}

// lookAgain is how long LastUsed relies on what it has found in the store.
const lookAgain = time.Minute

// LastUsed returns when a key was last used, to within some seconds; what other processes have
// counted is known once it is summed. It is zero if the key was not used within the retention time.
func (u *Usage) LastUsed(ctx context.Context, key account.KeyID) (time.Time, error) {
	now := u.config.Now()
	u.mu.RLock()
	known, looked := u.last[key], u.looked[key]
	u.mu.RUnlock()
	if since := now.Sub(looked); 0 <= since && since < lookAgain || hourOf(known) == hourOf(now) {
		return known, nil
	}
	var found time.Time
	newest := u.presentHour().period()
	for back := range u.periods() {
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
	u.looked[key], found = now, later(u.last[key], found)
	if !found.IsZero() {
		u.last[key] = found
	}
	return found, nil
}
