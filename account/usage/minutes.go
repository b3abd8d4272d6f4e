package usage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ashlar/account"
)

const (
	secondsOfDay = 24 * 60 * 60
	// keptMinutes is how many minutes before the current one are kept.
	keptMinutes = 60
	// maxMinuteBytes bounds the encoded counts of minutes in memory. The oldest minutes are
	// dropped first, so that very many active keys have less than an hour.
	maxMinuteBytes = 64 << 20
	// minuteRowBytes is about what a key of a minute takes besides its encoded counts.
	minuteRowBytes = 64
)

// minute is minutes since 1970, UTC.
type minute int64

func minuteOf(t time.Time) minute { return minute(max(0, t.Unix()) / 60) }

// minutes holds the counts of the last hour by minute. They are only in memory. After a
// start, those of hours that are not yet summed are restored from the flushes.
type minutes struct {
	now     minute                  // to which new counts belong
	current map[account.KeyID]calls // of now
	past    map[minute]map[account.KeyID][]byte
	bytes   int // of past
	most    int // of bytes
}

func newMinutes() minutes {
	return minutes{current: make(map[account.KeyID]calls), past: make(map[minute]map[account.KeyID][]byte), most: maxMinuteBytes}
}

// add adds counts to a minute, which becomes the current one. One before the current minute
// changes nothing, unless the clock was ahead.
func (m *minutes) add(at minute, id account.KeyID, counted calls) {
	m.turn(at)
	addTo(m.current, id, counted)
}

// flushed is what was counted in a minute, or a part of it.
type flushed struct {
	at   minute
	keys map[account.KeyID]calls
}

// restore adds what was flushed, in any order.
func (m *minutes) restore(all []flushed) {
	slices.SortFunc(all, func(a, b flushed) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		for id, counted := range one.keys {
			m.add(one.at, id, counted)
		}
	}
}

// turn ends the current minute if another one has begun.
func (m *minutes) turn(now minute) {
	if now == m.now || now+1 == m.now {
		return
	}
	if len(m.current) > 0 {
		ended := make(map[account.KeyID][]byte, len(m.current))
		for id, c := range m.current {
			row := slices.Clip(appendCalls(nil, c))
			ended[id] = row
			m.bytes += len(row) + minuteRowBytes
		}
		m.drop(m.now)
		m.past[m.now], m.current = ended, make(map[account.KeyID]calls)
	}
	m.now = now
	for at := range m.past {
		if at < now-keptMinutes || at >= now {
			m.drop(at)
		}
	}
	for m.bytes > m.most && len(m.past) > 0 {
		oldest := now
		for at := range m.past {
			oldest = min(oldest, at)
		}
		m.drop(oldest)
	}
}

func (m *minutes) drop(at minute) {
	for _, row := range m.past[at] {
		m.bytes -= len(row) + minuteRowBytes
	}
	delete(m.past, at)
}

// forget moves the counts of a key to those of deleted accounts.
func (m *minutes) forget(key account.KeyID) {
	moveToForgotten(m.current, key)
	for _, keys := range m.past {
		row, ok := keys[key]
		if !ok {
			continue
		}
		sum := make(calls)
		for _, one := range [][]byte{row, keys[forgotten]} {
			r := reader{rest: one}
			r.calls(func(s series, c Counts) { sum.add(calls{s: c}) })
			if one != nil {
				m.bytes -= len(one) + minuteRowBytes
			}
		}
		delete(keys, key)
		keys[forgotten] = slices.Clip(appendCalls(nil, sum))
		m.bytes += len(keys[forgotten]) + minuteRowBytes
	}
}

// readMinutes adds the counts of minutes of wanted keys.
func (u *Usage) readMinutes(q *Query, wanted func(account.KeyID) bool, add func(start int64, key account.KeyID, s series, n Counts)) error {
	type stored struct {
		at  minute
		id  account.KeyID
		row []byte
	}
	var rows []stored
	from, to := minuteOf(q.From), minuteOf(q.To.Add(time.Minute-1))
	has := func(at minute, id account.KeyID) bool {
		return at >= from && at < to && wanted(id)
	}
	u.mu.Lock()
	u.minutes.turn(minuteOf(u.config.Now()))
	for at, keys := range u.minutes.past {
		for id, row := range keys {
			if has(at, id) {
				rows = append(rows, stored{at, id, row})
			}
		}
	}
	for id, c := range u.minutes.current {
		if has(u.minutes.now, id) {
			for s, n := range c {
				add(int64(u.minutes.now)*60, id, s, n)
			}
		}
	}
	u.mu.Unlock()
	for _, one := range rows {
		r := reader{rest: one.row}
		r.calls(func(s series, n Counts) { add(int64(one.at)*60, one.id, s, n) })
		if err := r.end(); err != nil {
			return fmt.Errorf("usage: key %s: minute %d: %w", one.id, one.at, err)
		}
	}
	return nil
}
