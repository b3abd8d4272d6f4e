package limit

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Slots go around between callers, however many calls one of them has waiting.
func TestPoolIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 100)
		var greedy, modest, first Share
		if err := p.Enter(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		var order strings.Builder // written by who has the only slot
		enter := func(s *Share, name string) {
			go func() {
				if err := p.Enter(t.Context(), s); err != nil {
					t.Error(err)
				}
				order.WriteString(name)
				p.Leave(s)
			}()
			synctest.Wait()
		}
		for range 5 {
			enter(&greedy, "g")
		}
		enter(&modest, "m")
		enter(&modest, "m")
		p.Leave(&first)
		synctest.Wait()
		if order.String() != "gmgmggg" {
			t.Errorf("order %s, expected gmgmggg", order.String())
		}
	})
}

// A caller whose only waiting call has given up does not stand in line, and one that runs fewer calls than it may at most is
// served from the line.
func TestPoolForgetsCallsThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 100)
		var first, givesUp Share
		bounded := Share{Most: 1}
		if err := p.Enter(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		given, entered := make(chan error, 1), make(chan error, 1)
		go func() { given <- p.Enter(ctx, &givesUp) }()
		synctest.Wait()
		go func() { entered <- p.Enter(t.Context(), &bounded) }()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that gives up: %v", err)
		}
		p.Leave(&first)
		synctest.Wait()
		select {
		case err := <-entered:
			if err != nil {
				t.Error(err)
			}
			p.Leave(&bounded)
		default:
			t.Error("the next call is not served")
		}
		if p.Running() != 0 || p.Waiting() != 0 {
			t.Errorf("%d calls run and %d wait, expected none", p.Running(), p.Waiting())
		}
	})
}

// A caller that holds slots already is served after one that holds none, and only as far
// as slots are left.
func TestPoolCountsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(4, 100)
		var greedy, modest, other Share
		for _, s := range []*Share{&greedy, &greedy, &greedy, &other} {
			if err := p.Enter(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan string, 2)
		for _, waiting := range []struct {
			name  string
			share *Share
		}{{"greedy", &greedy}, {"modest", &modest}} {
			go func() {
				if err := p.Enter(t.Context(), waiting.share); err != nil {
					t.Error(err)
				}
				got <- waiting.name
			}()
			synctest.Wait()
		}
		served := func(expected string) {
			t.Helper()
			synctest.Wait()
			select {
			case name := <-got:
				if name != expected {
					t.Errorf("%s is served, expected %q", name, expected)
				}
			default:
				if expected != "" {
					t.Errorf("nobody is served, expected %s", expected)
				}
			}
		}
		p.Leave(&greedy)
		served("modest")
		p.Leave(&greedy)
		served("") // the third of greedy's would have the last slot
		p.Leave(&other)
		served("greedy")
	})
}

// One caller with any number of calls leaves a quarter of the slots to others, and at
// least one if there is more than one. The next gets three quarters of those.
func TestPoolLeavesSlots(t *testing.T) {
	for _, c := range []struct{ slots, first, second int }{
		{1, 1, 0}, {2, 1, 1}, {3, 2, 1}, {4, 3, 1}, {8, 6, 1}, {16, 12, 3}, {128, 96, 24},
	} {
		t.Run(strconv.Itoa(c.slots), func(t *testing.T) {
			p := NewPool(c.slots, 0)
			var first, second Share
			for _, of := range []struct {
				share    *Share
				expected int
			}{{&first, c.first}, {&second, c.second}} {
				got := 0
				for p.Enter(t.Context(), of.share) == nil {
					got++
				}
				if got != of.expected {
					t.Errorf("%d calls run, expected %d", got, of.expected)
				}
			}
			if p.Running() != c.first+c.second {
				t.Errorf("%d run in all", p.Running())
			}
		})
	}
}

// waiting starts calls of a caller that wait until ctx is done, and returns where their
// errors arrive.
func waiting(ctx context.Context, p *Pool, s *Share, calls int) <-chan error {
	ended := make(chan error, calls)
	for range calls {
		go func() { ended <- p.Enter(ctx, s) }()
		synctest.Wait()
	}
	return ended
}

// A caller with no call running takes a free slot, however full another has made the queue.
func TestPoolAdmitsIdleCallerPastFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 20)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var greedy, modest Share
		waiting(ctx, p, &greedy, 6+20)
		if p.Running() != 6 || p.Waiting() != 20 {
			t.Fatalf("%d run and %d wait, expected 6 and 20", p.Running(), p.Waiting())
		}
		if err := p.Enter(ctx, &modest); err != nil {
			t.Errorf("with two free slots: %v", err)
		}
		if p.Waiting() != 20 {
			t.Errorf("%d wait, expected 20", p.Waiting())
		}
	})
}

// A caller with a bound of its own runs no more calls, however many slots are free, and does
// not keep others from them.
func TestPoolBoundsOneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 20)
		ctx, cancel := context.WithCancel(t.Context())
		bounded, other := Share{Most: 2}, Share{}
		waiting(ctx, p, &bounded, 5)
		if p.Running() != 2 || p.Waiting() != 3 {
			t.Errorf("%d run and %d wait, expected 2 and 3", p.Running(), p.Waiting())
		}
		waiting(ctx, p, &other, 6)
		if p.Running() != 2+4 || p.Waiting() != 3+2 { // two slots stay free for a newcomer
			t.Errorf("%d run and %d wait, expected 6 and 5", p.Running(), p.Waiting())
		}
		p.Leave(&bounded)
		synctest.Wait()
		if p.Running() != 6 || p.Waiting() != 4 {
			t.Errorf("%d run and %d wait after one has left, expected 6 and 4", p.Running(), p.Waiting())
		}
		cancel()
		synctest.Wait()
		if p.Waiting() != 0 {
			t.Errorf("%d wait", p.Waiting())
		}
	})
}

// Callers that must leave slots free wait, however many they are, and others do not wait behind them.
func TestPoolSharesThatLeaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 20)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		slow := make([]Share, 10)
		for i := range slow {
			slow[i].Leaves = 2
			waiting(ctx, p, &slow[i], 1)
		}
		expect := func(what string, running, waits int) {
			t.Helper()
			synctest.Wait()
			if p.Running() != running || p.Waiting() != waits {
				t.Errorf("%s: %d run and %d wait, expected %d and %d", what, p.Running(), p.Waiting(), running, waits)
			}
		}
		expect("at first", 6, 4)
		var quick Share
		if err := p.Enter(ctx, &quick); err != nil {
			t.Fatal(err)
		}
		expect("beside another call", 7, 4)
		p.Leave(&slow[0])
		expect("after one of them", 7, 3)
		p.Leave(&quick)
		expect("after the other call", 6, 3)
	})
}

// Callers that leave slots to others are served although the others have calls waiting all the time.
func TestPoolSharesThatLeaveSlotsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 100)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range 20 {
			running.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond) // so that no two calls end at once
				var other Share
				for ctx.Err() == nil && p.Enter(ctx, &other) == nil {
					time.Sleep(time.Millisecond)
					p.Leave(&other)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		patient, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if err := p.Enter(patient, &Share{Leaves: 2}); err != nil {
			t.Errorf("a caller that leaves slots to others: %v", err)
		}
		cancel()
		running.Wait()
	})
}

// A full queue drops the newest call of the caller that has the most waiting.
func TestPoolDropsFromLongestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 4)
		ctx, cancel := context.WithCancel(t.Context())
		var first, greedy, modest, third Share
		if err := p.Enter(ctx, &first); err != nil {
			t.Fatal(err)
		}
		long := waiting(ctx, p, &greedy, 4)
		dropped := func(from <-chan error, expected int) {
			t.Helper()
			synctest.Wait()
			if len(from) != expected {
				t.Errorf("%d calls were dropped, expected %d", len(from), expected)
			}
			for range len(from) {
				if err := <-from; !errors.Is(err, ErrBusy) {
					t.Errorf("a dropped call ended with %v", err)
				}
			}
		}
		if err := p.Enter(ctx, &greedy); !errors.Is(err, ErrBusy) {
			t.Errorf("a fifth call of the longest queue: %v", err)
		}
		short := waiting(ctx, p, &modest, 2)
		dropped(long, 2)
		if err := p.Enter(ctx, &modest); !errors.Is(err, ErrBusy) {
			t.Errorf("a third call beside two and two: %v", err)
		}
		late := waiting(ctx, p, &third, 1)
		dropped(long, 1)
		dropped(short, 0)
		cancel()
		for ended, calls := range map[<-chan error]int{long: 1, short: 2, late: 1} {
			for range calls {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("a waiting call ended with %v", err)
				}
			}
		}
		if p.Waiting() != 0 || p.Running() != 1 {
			t.Errorf("%d wait and %d run, expected 0 and 1", p.Waiting(), p.Running())
		}
		p.Leave(&first)
		if err := p.Enter(t.Context(), &modest); err != nil {
			t.Errorf("a free slot: %v", err)
		}
	})
}

func TestPoolUnderLoad(t *testing.T) {
	const slots = 3
	p := NewPool(slots, 1000)
	var running, done int
	var mu sync.Mutex // guards running and done
	var group sync.WaitGroup
	for caller := range 8 {
		var share Share
		for range 4 {
			group.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(caller+i)%5)*50*time.Microsecond)
					if p.Enter(ctx, &share) == nil {
						mu.Lock()
						if running, done = running+1, done+1; running > slots {
							t.Errorf("%d run at once", running)
						}
						mu.Unlock()
						mu.Lock()
						running--
						mu.Unlock()
						p.Leave(&share)
					}
					cancel()
				}
			})
		}
	}
	group.Wait()
	if p.Running() != 0 || p.Waiting() != 0 || done == 0 {
		t.Errorf("%d run, %d wait, %d done", p.Running(), p.Waiting(), done)
	}
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(64, 64)
	b.RunParallel(func(pb *testing.PB) {
		var s Share
		for pb.Next() {
			if err := p.Enter(b.Context(), &s); err != nil {
				b.Error(err)
			}
			p.Leave(&s)
		}
	})
}
