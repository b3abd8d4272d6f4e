package usage

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// processes are processes that share a store.
type processes struct {
	*testing.T
	store kv.Store
	now   time.Time
}

func newProcesses(t *testing.T) *processes {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "usage", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &processes{T: t, store: store, now: time.Date(2026, 5, 1, 9, 50, 0, 0, time.UTC)}
}

// start starts the process with a number. Another one with this number has ended.
func (p *processes) start(node uint16) *Usage {
	p.Helper()
	u, err := Open(p.Context(), p.store, Config{Node: node, Now: func() time.Time { return p.now }})
	if err != nil {
		p.Fatal(err)
	}
	return u
}

// count counts a call, and flushes it.
func (p *processes) count(u *Usage) {
	p.Helper()
	u.Meter(a).Called(u.Series("main", "call"), time.Millisecond, 0)
	if err := u.Flush(p.Context()); err != nil {
		p.Fatal(err)
	}
}

// read returns the number of requests that a process knows.
func (p *processes) read(u *Usage) uint64 {
	p.Helper()
	to := p.now.Add(48 * time.Hour)
	all, err := u.Read(p.Context(), Query{All: true, To: to})
	one, err2 := u.Read(p.Context(), Query{Keys: []account.KeyID{a}, To: to})
	if err := errors.Join(err, err2); err != nil {
		p.Fatal(err)
	}
	if len(all) == 0 && len(one) == 0 {
		return 0
	}
	if len(all) != 1 || len(one) != 1 || all[0].Requests != one[0].Requests {
		p.Fatalf("of all keys %+v, of the only one %+v", all, one)
	}
	return all[0].Requests
}

// readAll returns the number of requests that a process knows that counts nothing itself.
func (p *processes) readAll() uint64 {
	p.Helper()
	u, err := Open(p.Context(), p.store, Config{All: true, Now: func() time.Time { return p.now }})
	if err != nil {
		p.Fatal(err)
	}
	return p.read(u)
}

// A process knows when keys were last used at others, also if it has looked before.
func TestLastUsedAtOthers(t *testing.T) {
	p := newProcesses(t)
	here, there := p.start(1), p.start(2)
	last := func(want time.Time) {
		t.Helper()
		if got, err := here.LastUsed(t.Context(), a); err != nil || !got.Equal(want) {
			t.Errorf("at %v: %v, %v, expected %v", p.now, got, err, want)
		}
	}
	last(time.Time{})
	for range 3 {
		used := p.now
		p.count(there)
		p.now = p.now.Add(time.Hour)
		if err := there.Flush(t.Context()); err != nil { // sums the hour
			t.Fatal(err)
		}
		last(used)
	}
	used := p.now
	p.count(here)
	last(used)
}

// TestAbandoned has a process vanish. Another one sums what it has flushed, when its time is
// over, and nothing is counted twice if it comes back.
func TestAbandoned(t *testing.T) {
	p := newProcesses(t)
	gone, other := p.start(1), p.start(2)
	p.count(gone)
	p.count(gone)
	gone.Meter(a).Called(gone.Series("main", "call"), time.Millisecond, 0) // lost
	p.count(other)
	is := func(when string, u *Usage, want, wantAll uint64) {
		t.Helper()
		if got, all := p.read(u), p.readAll(); got != want || all != wantAll {
			t.Errorf("%s: %d and %d requests, expected %d and %d", when, got, all, want, wantAll)
		}
	}
	is("at first", other, 1, 3)
	for range 2 {
		p.now = p.now.Add(time.Hour)
		other.takeOver(t.Context())
		is("while the process may come back", other, 1, 3)
	}
	p.now = p.now.Add(time.Hour)
	right := other.store
	other.store = failingDrop{right}
	if err := other.addUpAbandoned(t.Context()); err == nil {
		t.Error("the drop did not fail")
	}
	other.store = right
	is("half summed", other, 3, 3)
	is("half summed, when the process is back", p.start(1), 2, 3)
	other.takeOver(t.Context())
	is("summed", other, 3, 3)
	again := p.start(1)
	is("when the process is back", again, 3, 3)
	p.count(again)
	is("when it counts", again, 4, 4)
}

// TestTurns: a process does not sum while it is another one's turn.
func TestTurns(t *testing.T) {
	p := newProcesses(t)
	first, second := p.start(1), p.start(2)
	take := func(when string, u *Usage, want bool) {
		t.Helper()
		if mine, err := u.claim(t.Context()); err != nil || mine != want {
			t.Errorf("%s: %v, %v, expected %v", when, mine, err, want)
		}
	}
	take("nobody has it", first, true)
	take("the other one has it", second, false)
	take("it has it itself", first, true)
	p.now = p.now.Add(claimTime)
	take("the turn has ended", second, true)
	take("the other one has it now", first, false)
	p.now = p.now.Add(-24 * time.Hour)
	take("it was taken by a clock that was ahead", first, true)
}

// TestPausedForHours pauses a process that has counts in memory, while its flushes are summed
// by another one.
func TestPausedForHours(t *testing.T) {
	p := newProcesses(t)
	paused, other := p.start(1), p.start(2)
	p.count(paused)
	paused.Meter(a).Called(paused.Series("main", "call"), time.Millisecond, 0)
	p.now = p.now.Add(5 * time.Hour)
	other.takeOver(t.Context())
	if err := paused.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.now = p.now.Add(time.Hour)
	p.count(paused)
	for name, u := range map[string]*Usage{"the process": paused, "another one": other, "the process after a start": p.start(1)} {
		if got := p.read(u); got != 3 {
			t.Errorf("%s knows %d requests, expected 3", name, got)
		}
	}
}

// unanswered writes batches and fails all the same.
type unanswered struct{ kv.Store }

func (s unanswered) Write(ctx context.Context, b kv.Batch) error {
	return errors.Join(s.Store.Write(ctx, b), context.DeadlineExceeded)
}

// TestUnansweredWrite: a flush that was written without an answer is not counted twice.
func TestUnansweredWrite(t *testing.T) {
	p := newProcesses(t)
	u := p.start(1)
	right := u.store
	u.store = unanswered{right}
	u.Meter(a).Called(u.Series("main", "call"), time.Millisecond, 0)
	for range 2 {
		if err := u.Flush(t.Context()); err == nil {
			t.Fatal("it does not fail")
		}
		if got := p.read(u); got != 1 {
			t.Errorf("%d requests after a write without an answer, expected 1", got)
		}
		p.now = p.now.Add(time.Second)
	}
	u.store = right
	p.count(u)
	for _, u := range []*Usage{u, p.start(1)} {
		if got := p.read(u); got != 2 {
			t.Errorf("%d requests, expected 2", got)
		}
	}
}

// TestProcessesComeAndGo kills, pauses and starts processes at random, while time passes and
// deletions fail. Each flushed count is in the sums exactly once.
func TestProcessesComeAndGo(t *testing.T) {
	for seed := range uint64(10) {
		p := newProcesses(t)
		random := rand.New(rand.NewPCG(seed, 1))
		running := map[uint16]*Usage{}
		flushed := uint64(0)
		for range 100 {
			node := uint16(1 + random.IntN(4))
			u := running[node]
			switch random.IntN(8) {
			case 0:
				delete(running, node) // killed: all is flushed
			case 1:
				p.now = p.now.Add(time.Duration(random.IntN(180)) * time.Minute)
			case 2:
				if u != nil {
					u.store = failingDrop{p.store}
					_ = u.Flush(t.Context()) // both fail if there is something to delete
					_ = u.addUpAbandoned(t.Context())
					u.store = p.store
				}
			case 3:
				if u != nil {
					u.takeOver(t.Context())
				}
			default:
				if u == nil {
					u = p.start(node)
					running[node] = u
				}
				p.count(u)
				flushed++
			}
			if got := p.readAll(); got != flushed {
				t.Fatalf("seed %d: %d requests, expected %d", seed, got, flushed)
			}
		}
		p.now = p.now.Add(4 * time.Hour)
		last := p.start(9)
		last.takeOver(t.Context())
		if got := p.read(last); got != flushed {
			t.Errorf("seed %d: %d requests when all processes have gone, expected %d", seed, got, flushed)
		}
	}
}
