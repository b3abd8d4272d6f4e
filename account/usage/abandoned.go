package usage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// A process that has gone for good leaves flushes of its last hour. Another process sums
// them, at a time when their own process does not write to the hour any more:
//
//	hour of the clock     h              h+1           h+2    h+3 and later
//	flushes of hour h     are written    are summed    -      are summed
//	                      by their own process                by any process
//
// The time between allows for clocks that differ and for writes that take long. A process
// that was paused follows the same rule when it wakes up.
//
// Processes take turns: two that summed the same flushes at once could overwrite a sum with
// a part of it, if one read them while the other one deleted them.

// ownTime reports whether a process may still write to its hour h.
func ownTime(h, now hour) bool { return now < h+2 }

// abandoned reports whether any process may sum the flushes of hour h.
func abandoned(h, now hour) bool { return now >= h+3 }

const (
	// pointerClaim names the pointer that says whose turn it is: Unix milliseconds at which
	// the turn ends (8 bytes), and the process (2).
	pointerClaim = "usage"
	// claimTime is the length of a turn. The process uses only the first half.
	claimTime = 10 * time.Minute
)

// leaveLate makes counts that were not written in their own process's time belong to the
// present hour. Those of a row that was written without an answer may be counted twice then.
func (u *Usage) leaveLate(now hour) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !ownTime(u.present, now) {
		u.turn(now)
	}
	if u.writing != nil && !ownTime(u.writing.hour, now) {
		for id, c := range u.writing.keys {
			addTo(u.pending, id, c)
		}
		u.writing = nil
	}
}

// takeOver sums what processes that have gone have left.
func (u *Usage) takeOver(ctx context.Context) {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	if err := u.addUpAbandoned(ctx); err != nil && ctx.Err() == nil {
		slog.Error("cannot sum the usage of processes that have gone: trying again", "error", err)
	}
}

// addUpAbandoned sums all abandoned flushes, unless it is another process's turn. flushing
// must be held.
func (u *Usage) addUpAbandoned(ctx context.Context) error {
	if mine, err := u.claim(ctx); err != nil || !mine {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, claimTime/2)
	defer cancel()
	now := hourOf(u.config.Now())
	all, err := u.findAbandoned(ctx, now)
	if err != nil {
		return err
	}
	for _, by := range all {
		o, err := u.readFlushes(ctx, by)
		if err == nil {
			err = u.addUp(ctx, by, o)
		}
		if err != nil {
			return err
		}
	}
	for h := range u.open { // another process may have summed them
		if abandoned(h, now) {
			u.forget(h)
		}
	}
	return nil
}

// claim takes a turn, or returns false if another process has it.
func (u *Usage) claim(ctx context.Context) (mine bool, err error) {
	before, err := u.store.Pointer(ctx, pointerClaim)
	if errors.Is(err, kv.ErrNotFound) {
		before, err = nil, nil
	}
	if err != nil {
		return false, fmt.Errorf("usage: %w", err)
	}
	now := u.milliseconds()
	if len(before) == 10 {
		end, node := binary.BigEndian.Uint64(before), binary.BigEndian.Uint16(before[8:])
		const longest = uint64(2 * claimTime / time.Millisecond) // from a clock that was ahead if it ends later
		if node != u.config.Node && end > now && end-now < longest {
			return false, nil
		}
	}
	claim := binary.BigEndian.AppendUint64(nil, now+uint64(claimTime/time.Millisecond))
	err = u.store.CompareAndSet(ctx, pointerClaim, before, binary.BigEndian.AppendUint16(claim, u.config.Node))
	if errors.Is(err, kv.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("usage: %w", err)
	}
	return true, nil
}

// findAbandoned lists abandoned flushes, this process's own among them.
func (u *Usage) findAbandoned(ctx context.Context, now hour) (all []share, err error) {
	var previous share
	for row, err := range u.store.Walk(ctx, flushes, 0) {
		if err != nil {
			return nil, fmt.Errorf("usage: %w", err)
		}
		by, err := shareOf(row.Partition)
		if err != nil {
			return nil, err
		}
		if by != previous && abandoned(by.hour, now) {
			all = append(all, by)
		}
		previous = by
	}
	return all, nil
}

// readFlushes returns the sums of what a process has flushed in an hour.
func (u *Usage) readFlushes(ctx context.Context, by share) (*openHour, error) {
	cursor := u.store.Scan(ctx, flushes, flushPartition(by), 0, ^uint64(0))
	var o *openHour
	var broken error
	for broken == nil && cursor.Next() {
		var counted map[account.KeyID]calls
		if counted, broken = decodeFlush(cursor.Value()); broken != nil {
			broken = fmt.Errorf("table %s: row %d: %w", flushes.Name, cursor.Sort(), broken)
			break
		}
		if o == nil {
			o = newOpenHour(cursor.Sort())
		}
		o.add(cursor.Sort(), counted)
	}
	if err := errors.Join(broken, cursor.Close()); err != nil {
		return nil, fmt.Errorf("usage: %w", err)
	}
	if o == nil { // they were deleted in the meantime
		o = newOpenHour(0)
	}
	return o, nil
}
