package usage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"
)

// After a crash flushed counts are there exactly once, at any stage of an hour.
func TestCrashes(t *testing.T) {
	f := newFixture(t)
	check := func(when string, want uint64) {
		t.Helper()
		for name, q := range map[string]Query{"all": {All: true}, "the key": {Keys: []account.KeyID{a}}} {
			if got := f.requests(q)[""]; got != want {
				t.Errorf("%s: %d requests of %s, expected %d", when, got, name, want)
			}
		}
	}
	f.count(a, "main", "call", 2)
	check("not flushed", 2)
	f.crash()
	check("lost", 0)
	f.count(a, "main", "call", 3)
	f.flush()
	f.count(a, "main", "call", 4)
	f.flush()
	f.crash()
	check("flushed", 7)
	f.pass(time.Hour)
	f.flush()
	check("added up", 7)
	f.crash()
	check("added up and opened again", 7)

	// Summed, but interrupted before the flushes were deleted.
	f.count(a, "main", "call", 5)
	f.flush()
	h := f.present
	f.pass(time.Hour)
	broken := &failingDrop{Store: f.store}
	f.Usage.store = broken
	if err := f.Flush(t.Context()); err == nil || f.Usage.open[h] == nil {
		t.Fatalf("the drop did not fail: %v", err)
	}
	check("half added up", 12)
	f.crash()
	check("half added up and opened again", 12)
	f.flush()
	check("added up a second time", 12)
	f.crash()
	check("added up a second time and opened again", 12)
}

type failingDrop struct{ kv.Store }

func (failingDrop) Drop(context.Context, *kv.Table, []byte) error { return kv.ErrClosed }

// A flush makes up for one that failed.
func TestFlushFails(t *testing.T) {
	f := newFixture(t)
	f.count(a, "main", "call", 2)
	right := f.store
	f.Usage.store = failingWrite{f.store}
	if err := f.Flush(t.Context()); err == nil {
		t.Fatal("it does not fail")
	}
	f.count(a, "main", "call", 3)
	f.Usage.store = right
	f.flush()
	f.crash()
	if got := f.requests(Query{All: true})[""]; got != 5 {
		t.Errorf("%d requests, expected 5", got)
	}
}

type failingWrite struct{ kv.Store }

func (failingWrite) Write(context.Context, kv.Batch) error { return kv.ErrClosed }

// If the clock is set back by more than an hour, no count is lost or counted twice.
func TestClockGoesBack(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.count(a, "main", "call", 2)
		f.flush()
		f.pass(time.Hour)
		f.flush()
		f.pass(-time.Hour + time.Second)
		f.crash()
	}
	if got := f.requests(Query{All: true})[""]; got != 6 {
		t.Errorf("%d requests, expected 6", got)
	}
}

// With concurrent counting, flushing and reading, no count is lost or counted twice.
func TestManyAtOnce(t *testing.T) {
	f := newFixture(t)
	const each = 2000
	var counting, others sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		counting.Go(func() {
			key := account.KeyID{byte(i % 2)}
			key[7] = 1
			for n := range each {
				f.Meter(key).Called(f.Series("main", fmt.Sprint(n%7)), time.Duration(n)*time.Microsecond, 0)
			}
		})
	}
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				f.flush()
				f.pass(7 * time.Minute)
			}
		}
	})
	others.Go(func() {
		before := uint64(0)
		for {
			select {
			case <-stop:
				return
			default:
				found, err := f.Read(t.Context(), Query{All: true, To: f.at.Load().Add(1000 * time.Hour)})
				if err != nil {
					t.Error(err)
				}
				if len(found) > 0 {
					if found[0].Requests < before {
						t.Errorf("%d requests after %d", found[0].Requests, before)
					}
					before = found[0].Requests
				}
			}
		}
	})
	counting.Wait()
	close(stop)
	others.Wait()
	f.flush()
	f.crash()
	found, err := f.Read(t.Context(), Query{All: true, To: f.at.Load().Add(time.Hour)})
	if err != nil || len(found) != 1 || found[0].Requests != 4*each {
		t.Errorf("%+v, %v; expected %d requests", found, err, 4*each)
	}
}

// The power is cut during flushes and sums: earlier flushes are counted once, the current one once
// or not at all.
func TestPowerCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	disk, now := pebbletest.NewDisk(), time.Date(2026, 5, 1, 23, 50, 0, 0, time.UTC)
	config := Config{Now: func() time.Time { return now }}
	open := func(d *pebbletest.Disk) (*Usage, kv.Store) {
		t.Helper()
		store, err := d.Open(pebble.Options{Path: "usage"})
		if err != nil {
			t.Fatal(err)
		}
		u, err := Open(t.Context(), store, config)
		if err != nil {
			t.Fatal(err)
		}
		return u, store
	}
	sum := func(u *Usage) uint64 {
		t.Helper()
		all, err := u.Read(t.Context(), Query{All: true, To: now.Add(time.Hour)})
		one, err2 := u.Read(t.Context(), Query{Keys: []account.KeyID{a}, To: now.Add(time.Hour)})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 && len(one) == 0 {
			return 0
		}
		if len(all) != 1 || len(one) != 1 || !reflect.DeepEqual(all[0].Counts, one[0].Counts) {
			t.Fatalf("of all keys %+v, of the only one %+v", all, one)
		}
		return all[0].Requests
	}
	u, store := open(disk)
	flushed := uint64(0)
	for n := range 150 {
		u.Meter(a).Called(u.Series("main", "call"), time.Millisecond, 0)
		now = now.Add(time.Duration(random.IntN(40)) * time.Minute)
		var during *pebbletest.Disk
		at, kept := disk.Operations()+1+random.Int64N(12), random.IntN(101)
		disk.Before(func(op pebbletest.Operation) error {
			if op.Number == at {
				during = disk.PowerCut(kept, rand.New(rand.NewPCG(uint64(n), 3)))
			}
			return nil
		})
		if err := u.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		disk.Before(func(pebbletest.Operation) error { return nil })
		if during != nil {
			again, closer := open(during)
			found := sum(again)
			if found != flushed && found != flushed+1 {
				t.Fatalf("flush %d, under way: %d requests, expected %d or one more", n, found, flushed)
			}
			if err := again.Flush(t.Context()); err != nil { // completes what was begun
				t.Fatal(err)
			}
			if after := sum(again); after != found {
				t.Fatalf("flush %d: %d requests when opened again, %d when flushed then", n, found, after)
			}
			_ = closer.Close()
		}
		flushed++
	}
	if got := sum(u); got != flushed {
		t.Errorf("%d requests, expected %d", got, flushed)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
