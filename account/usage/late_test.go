package usage

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

// flushRows returns the number of flushes of an hour that are stored.
func (p *processes) flushRows(h hour) (n int) {
	p.Helper()
	for row, err := range p.store.Walk(p.Context(), flushes, 0) {
		if err != nil {
			p.Fatal(err)
		}
		if by, err := shareOf(row.Partition); err != nil || by.hour == h {
			n++
		}
	}
	return n
}

// TestWhenHoursAreSummed pauses a process after a flush. It sums the hour of the flush in the next one; in the one
// after that nobody does, because clocks differ and writes may take long; and from then on it does so like any process.
func TestWhenHoursAreSummed(t *testing.T) {
	for hours, rows := range []int{1, 0, 1, 0, 0} {
		p := newProcesses(t)
		u, h := p.start(1), hourOf(p.now)
		p.count(u)
		p.now = p.now.Add(time.Duration(hours) * time.Hour)
		if err := u.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.flushRows(h); got != rows || len(u.open) != rows {
			t.Errorf("%d hours later: %d flushes are stored and %d hours open, expected %d", hours, got, len(u.open), rows)
		}
		if got := p.read(u); got != 1 {
			t.Errorf("%d hours later: %d requests, expected 1", hours, got)
		}
	}
}

// TestLateCounts has a store refuse a flush for hours. Counts that come too late for their hour, in which another
// process may sum what is stored, belong to the present one.
func TestLateCounts(t *testing.T) {
	for hours, late := range []bool{false, false, true, true} {
		p := newProcesses(t)
		u, h := p.start(1), hourOf(p.now)
		right := u.store
		u.store = failingWrite{right}
		u.Meter(a).Called(u.Series("main", "call"), time.Millisecond, 0)
		if err := u.Flush(t.Context()); !errors.Is(err, kv.ErrClosed) {
			t.Fatal(err)
		}
		p.now = p.now.Add(time.Duration(hours) * time.Hour)
		u.store = right
		p.count(u)
		want := map[hour]uint64{h: 2}
		if late {
			want = map[hour]uint64{hourOf(p.now): 2}
		}
		lines, err := u.Read(t.Context(), Query{All: true, To: p.now.Add(time.Hour), By: ByHour})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[hour]uint64)
		for _, l := range lines {
			got[hourOf(l.Time)] = l.Requests
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d hours later: requests by hour are %v, expected %v", hours, got, want)
		}
		if n := p.flushRows(h); late && n > 0 {
			t.Errorf("%d hours later: a flush of the hour is stored, which another process may be summing", hours)
		}
	}
}

var errNotDurable = errors.New("flushes are dropped before their sum is durable")

// durableFirst is a store that refuses to drop anything while something written is not durable.
type durableFirst struct {
	kv.Store
	written, dropped int
}

func (s *durableFirst) Write(ctx context.Context, b kv.Batch) error {
	s.written++
	return s.Store.Write(ctx, b)
}

func (s *durableFirst) Sync(ctx context.Context) error {
	s.written = 0
	return s.Store.Sync(ctx)
}

func (s *durableFirst) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	s.dropped++
	if s.written > 0 {
		return errNotDurable
	}
	return s.Store.Drop(ctx, t, partition)
}

// The sum of an hour is durable before its flushes are dropped, at the end of the hour and when another process
// sums it.
func TestSumsAreDurableFirst(t *testing.T) {
	p := newProcesses(t)
	for _, pause := range []time.Duration{time.Hour, 3 * time.Hour} {
		u := p.start(1)
		p.count(u)
		p.now = p.now.Add(pause)
		if pause > time.Hour {
			u = p.start(2)
		}
		s := &durableFirst{Store: p.store}
		u.store = s
		if err := errors.Join(u.Flush(t.Context()), u.addUpAbandoned(t.Context())); err != nil {
			t.Error(err)
		}
		if s.dropped == 0 {
			t.Error("nothing is dropped")
		}
	}
}

// during is a store that does something when a batch is written, before it says so.
type during struct {
	kv.Store
	do func()
}

func (s during) Write(ctx context.Context, b kv.Batch) error {
	err := s.Store.Write(ctx, b)
	s.do()
	return err
}

// A reader begins during a flush, and reads the store only after the hour is summed: the flush is counted once.
func TestReadDuringAFlush(t *testing.T) {
	p := newProcesses(t)
	u, h := p.start(1), hourOf(p.now)
	requests := uint64(0)
	add := func(_ hour, _ account.KeyID, _ series, n Counts) { requests += n.Requests }
	var seen *moment
	u.store = during{p.store, func() {
		seen = u.remembered(true, func(account.KeyID) bool { return true }, h, h+1, add)
	}}
	p.count(u)
	u.store = p.store
	p.now = p.now.Add(time.Hour)
	if err := u.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.flushRows(h) > 0 || seen == nil {
		t.Fatal("the hour is not summed")
	}
	if err := u.readHours(t.Context(), account.KeyID{}, h, h+1, seen, add); err != nil {
		t.Fatal(err)
	}
	if requests != 1 {
		t.Errorf("%d requests, expected 1", requests)
	}
}

// distinct is a store that notices if a batch has two values of one row, of which any may be kept.
type distinct struct {
	kv.Store
	rows, twice int
}

type distinctBatch struct {
	kv.Batch
	store *distinct
	seen  map[string]bool
}

func (s *distinct) NewBatch() kv.Batch {
	return &distinctBatch{s.Store.NewBatch(), s, make(map[string]bool)}
}

func (s *distinct) Write(ctx context.Context, b kv.Batch) error {
	return s.Store.Write(ctx, b.(*distinctBatch).Batch)
}

func (b *distinctBatch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	name := fmt.Sprint(t.Name, partition, sort)
	if b.store.rows++; b.seen[name] {
		b.store.twice++
	}
	b.seen[name] = true
	b.Batch.Put(t, partition, sort, value)
}

// What a deleted account has used is in the sum of all keys, which is the only row of the ID that both have.
func TestSumWithDeletedAccount(t *testing.T) {
	p := newProcesses(t)
	u := p.start(1)
	for _, key := range []account.KeyID{a, b} {
		u.Meter(key).Called(u.Series("main", "call"), time.Millisecond, 0)
	}
	if err := errors.Join(u.Flush(t.Context()), u.Forget(t.Context(), account.ID{}, []account.KeyID{b})); err != nil {
		t.Fatal(err)
	}
	p.now = p.now.Add(time.Hour)
	s := &distinct{Store: p.store}
	u.store = s
	if err := u.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.rows != 2 || s.twice > 0 {
		t.Errorf("%d rows are written, %d of them twice in a batch, expected those of one key and of all", s.rows, s.twice)
	}
	lines, err := u.Read(t.Context(), Query{All: true, To: p.now})
	if err != nil || len(lines) != 1 || lines[0].Requests != 2 {
		t.Errorf("of all keys %+v, %v, expected 2 requests", lines, err)
	}
}
