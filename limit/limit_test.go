package limit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeter(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	m := NewMeter(Rate{PerSecond: 10, Burst: 20})
	for _, step := range []struct {
		after   time.Duration // the beginning
		credits int
		wait    time.Duration // 0: allowed
		current float64
	}{
		{0, 15, 0, 0},
		{0, 5, 0, 0},
		{0, 1, 100 * time.Millisecond, 21},
		{100 * time.Millisecond, 1, 0, 0},
		{1100 * time.Millisecond, 10, 0, 0},
		{1100 * time.Millisecond, 5, 500 * time.Millisecond, 15 + 0.9*22},
		{time.Hour, 100, 0, 0}, // more than can be saved up costs all of it
		{time.Hour, 1, 100 * time.Millisecond, 101},
	} {
		excess, ok := m.Spend(begun.Add(step.after), step.credits)
		if ok != (step.wait == 0) || excess.Wait != step.wait || !ok && (excess.Allowed != 10 || !near(excess.Current, step.current)) {
			t.Errorf("%d credits after %v: %+v %t, expected a wait of %v at %v", step.credits, step.after, excess, ok, step.wait, step.current)
		}
	}
	if _, ok := NewMeter(Rate{}).Spend(begun, 1e9); !ok {
		t.Error("no limit limits")
	}
}

// A meter that takes another's place begins with what that one had left.
func TestMeterNext(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		name           string
		before, after  Rate
		spent, expects int
	}{
		{"nothing was spent", Rate{10, 20}, Rate{10, 20}, 0, 20},
		{"some was spent", Rate{10, 20}, Rate{10, 20}, 15, 5},
		{"all was spent, of more", Rate{10, 20}, Rate{5, 10}, 20, 0},
		{"some was spent, of less", Rate{5, 10}, Rate{10, 20}, 10, 10},
		{"there was no limit", Rate{}, Rate{10, 20}, 100, 20},
	} {
		m := NewMeter(c.before)
		m.Spend(now, c.spent)
		next, got := m.Next(now, c.after), 0
		for got <= c.after.Burst {
			if _, ok := next.Spend(now, 1); !ok {
				break
			}
			got++
		}
		if got != c.expects {
			t.Errorf("%s: %d may be spent, expected %d", c.name, got, c.expects)
		}
	}
	if _, ok := NewMeter(Rate{10, 20}).Next(now, Rate{}).Spend(now, 1e9); !ok {
		t.Error("no limit limits")
	}
}

// Credits that are owed are paid back before more can be spent.
func TestMeterOwes(t *testing.T) {
	m, now := NewMeter(Rate{PerSecond: 10, Burst: 20}), time.Unix(1_000_000, 0)
	if _, ok := m.Spend(now, 0); !ok {
		t.Error("in debt from the beginning")
	}
	m.Owe(now, 70)
	if excess, ok := m.Spend(now, 0); ok || excess.Wait != 5*time.Second {
		t.Errorf("50 credits in debt: %+v %t, expected to wait for 5 s", excess, ok)
	}
	if _, ok := m.Spend(now.Add(5*time.Second), 0); !ok {
		t.Error("still in debt after 5 s")
	}
	if excess, ok := m.Spend(now.Add(5*time.Second), 1); ok || excess.Wait != 100*time.Millisecond {
		t.Errorf("nothing saved up yet: %+v %t", excess, ok)
	}
	NewMeter(Rate{}).Owe(now, 1)
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestDay(t *testing.T) {
	evening := time.Date(2026, 5, 1, 23, 59, 0, 0, time.UTC)
	var d Day
	if _, ok := d.Spend(evening, 60, 100); !ok {
		t.Error("refused within the quota")
	}
	if wait, ok := d.Spend(evening, 41, 100); ok || wait != time.Minute {
		t.Errorf("over the quota: wait %v, %t", wait, ok)
	}
	if _, ok := d.Spend(evening, 40, 100); !ok || d.Used(evening) != 100 {
		t.Errorf("the rest is refused, or %d are used", d.Used(evening))
	}
	if _, ok := d.Spend(evening.Add(time.Minute), 100, 100); !ok {
		t.Error("refused on the next day")
	}
	if _, ok := d.Spend(evening, 1, 100); ok {
		t.Error("a clock that is set back brings the old day back")
	}
	if _, ok := d.Spend(evening.Add(time.Minute), 100, 100); !ok {
		t.Error("refused on the day after the clock was set back")
	}
	if _, ok := d.Spend(evening, 1e6, 0); !ok {
		t.Error("no quota limits")
	}
	year := evening.Add(365 * 24 * time.Hour) // the clock jumps ahead for a moment
	if _, ok := d.Spend(year, 100, 100); !ok {
		t.Error("refused after a jump of the clock")
	}
	if _, ok := d.Spend(evening, 1, 100); ok {
		t.Error("the quota is there again after a jump of the clock")
	}
	if _, ok := d.Spend(evening.Add(time.Minute), 100, 100); !ok {
		t.Error("refused on the days after a jump of the clock")
	}
	next := evening.Add(48 * time.Hour)
	d.Add(next, 50)
	d.Spend(next, 30, 100)
	d.Return(next, 20)
	if used := d.Used(next); used != 60 {
		t.Errorf("%d are used of what was restored, spent and given back, expected 60", used)
	}
	if d.Return(next, 100); d.Used(next) != 0 {
		t.Error("more given back than was spent")
	}
}

func TestBudget(t *testing.T) {
	b := NewBudget(240 << 10)
	var greedy, modest, late Holding
	small, large, other := Lease{Budget: b, Caller: &greedy}, Lease{Budget: b, Caller: &greedy}, Lease{Budget: b, Caller: &greedy}
	if !small.Hold(8<<10) || b.Held() != 0 {
		t.Errorf("a small request is counted: %d", b.Held())
	}
	if !large.Hold(60<<10) || !large.Hold(20<<10) || !large.Hold(70<<10) || b.Held() != 72<<10 {
		t.Errorf("%d held, expected 73728: a lease grows by 8 KiB", b.Held())
	}
	if other.Hold(49<<10) || b.Held() != 72<<10 {
		t.Errorf("more than half of the budget: %d", b.Held())
	}
	if !other.Hold(48 << 10) {
		t.Error("the rest of the half is refused")
	}
	second, third := Lease{Budget: b, Caller: &modest}, Lease{Budget: b, Caller: &late}
	if second.Hold(61<<10) || !second.Hold(56<<10) {
		t.Error("another caller may hold more than is left with it, or less")
	}
	if !third.Hold(32 << 10) {
		t.Error("nothing is left for a third caller")
	}
	second.Release()
	third.Release()
	large.Release()
	large.Release()
	other.Release()
	if b.Held() != 0 {
		t.Errorf("%d held after all was given back", b.Held())
	}
}

func TestLedger(t *testing.T) {
	l := NewLedger(100)
	take := func(caller string, bytes int, want bool) {
		t.Helper()
		if got := l.Take(caller, bytes); got != want {
			t.Errorf("%d bytes of %s: %t, expected %t with %d held", bytes, caller, got, want, l.Held())
		}
	}
	take("greedy", 40, true)
	take("greedy", 11, false)
	take("greedy", 10, true)
	take("modest", 26, false)
	take("modest", 25, true)
	take("late", 12, true)
	l.Give("greedy", 50)
	take("late", 21, true)
	l.Give("late", 33)
	l.Give("modest", 25)
	if l.Held() != 0 || len(l.byCaller) != 0 {
		t.Errorf("%d bytes of %d callers are held after all was given back", l.Held(), len(l.byCaller))
	}
}

func TestAddresses(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	a := NewAddresses(Rate{PerSecond: 1, Burst: 3}, 2)
	guesser, neighbour := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")
	for range 3 {
		if _, ok := a.Spend(now, guesser); !ok {
			t.Error("refused within the burst")
		}
	}
	if excess, ok := a.Spend(now, neighbour); ok || excess.Wait != time.Second {
		t.Errorf("another address of the same network: %+v %t", excess, ok)
	}
	if _, ok := a.Spend(now.Add(time.Second), guesser); !ok {
		t.Error("refused when its time is over")
	}
	four := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		a.Spend(now, netip.MustParseAddr("::ffff:192.0.2.1"))
	}
	if _, ok := a.Spend(now, four); ok {
		t.Error("an IPv4 address is another one within IPv6")
	}
	for i := range 100 {
		a.Spend(now, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	if a.Len() != 2 {
		t.Errorf("%d addresses are kept, expected 2", a.Len())
	}
}

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

func ExampleMeter() {
	m := NewMeter(Rate{PerSecond: 100, Burst: 100})
	now := time.Unix(0, 0)
	m.Spend(now, 100)
	excess, ok := m.Spend(now, 10)
	fmt.Println(ok, excess.Wait)
	// Output: false 100ms
}
