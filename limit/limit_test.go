package limit

import (
	"fmt"
	"net/netip"
	"testing"
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
	indebted := NewMeter(Rate{10, 20})
	indebted.Owe(now, 70)
	for _, c := range []struct {
		after Rate
		wait  time.Duration
	}{{Rate{10, 20}, 5 * time.Second}, {Rate{5, 10}, 10 * time.Second}, {Rate{100, 200}, 0}} {
		if excess, ok := indebted.Next(now, c.after).Spend(now, 0); ok != (c.wait == 0) || excess.Wait != c.wait {
			t.Errorf("50 credits in debt, then %+v: %+v %t, expected a wait of %v", c.after, excess, ok, c.wait)
		}
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
	last := next.Add(24 * time.Hour)
	d.Spend(last, 70, 100)
	if d.Return(next, 20); d.Used(last) != 70 {
		t.Errorf("%d are used after what another day had spent was given back, expected 70", d.Used(last))
	}
	if d.Return(last, 100); d.Used(last) != 0 {
		t.Error("more given back than was spent")
	}
}

// A clock that shows the next day for a while does not give the quota of the day again.
func TestDayAfterAJumpOfTheClock(t *testing.T) {
	morning := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	tomorrow := morning.Add(24 * time.Hour)
	var d Day
	d.Spend(morning, 90, 100)
	for jump := range 3 {
		if _, ok := d.Spend(tomorrow, 2, 100); !ok {
			t.Errorf("jump %d: refused while the clock shows the next day", jump)
		}
		used := uint64(90 + 2*(jump+1))
		if _, ok := d.Spend(morning, 10, 100); ok || d.Used(morning) != used {
			t.Errorf("jump %d: spent again: %t, used %d, want %d", jump, ok, d.Used(morning), used)
		}
	}
	if _, ok := d.Spend(morning, 4, 100); !ok {
		t.Error("the rest of the day is refused")
	}
	if _, ok := d.Spend(tomorrow, 100, 100); !ok {
		t.Error("refused on the next day")
	}
	if used := d.Used(tomorrow.Add(-48 * time.Hour)); used != 100 { // a day of which nothing is known
		t.Errorf("%d are used two days before, expected 100", used)
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
	if second.Shrink(60 << 10); b.Held() != (72+48+56+32)<<10 {
		t.Errorf("%d held: a lease gave back what it needs", b.Held())
	}
	if second.Shrink(9 << 10); b.Held() != (72+48+16+32)<<10 {
		t.Errorf("%d held after a lease has shrunk to 16 KiB", b.Held())
	}
	if second.Shrink(8 << 10); b.Held() != (72+48+32)<<10 {
		t.Errorf("%d held after a lease has shrunk to what is free", b.Held())
	}
	second.Release()
	third.Release()
	large.Release()
	large.Release()
	other.Release()
	if b.Held() != 0 {
		t.Errorf("%d held after all was given back", b.Held())
	}
	if !small.HoldAll(1000) || !small.HoldAll(900) || !small.Hold(1000) || b.Held() != 1000 {
		t.Errorf("%d held, expected 1000: no byte is free", b.Held())
	}
	if small.HoldAll(240<<10) || b.Held() != 1000 {
		t.Errorf("more is held than there is: %d", b.Held())
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

func ExampleMeter() {
	m := NewMeter(Rate{PerSecond: 100, Burst: 100})
	now := time.Unix(0, 0)
	m.Spend(now, 100)
	excess, ok := m.Spend(now, 10)
	fmt.Println(ok, excess.Wait)
	// Output: false 100ms
}

// TestReturn: credits that are given back can be spent again, but no more than the burst.
func TestReturn(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMeter(Rate{PerSecond: 1, Burst: 10})
	for range 3 {
		if _, ok := m.Spend(now, 40); !ok { // more than the burst are taken like the burst
			t.Fatal("the burst cannot be spent")
		}
		m.Return(40)
	}
	m.Return(4)
	if _, ok := m.Spend(now, 10); !ok {
		t.Error("the burst cannot be spent after it was given back")
	}
	if _, ok := m.Spend(now, 1); ok {
		t.Error("more than the burst was spent")
	}
	m.Return(2)
	if _, ok := m.Spend(now, 3); ok {
		t.Error("more was spent than was given back")
	}
	if _, ok := m.Spend(now, 2); !ok {
		t.Error("what was given back cannot be spent")
	}
}

// TestShareOfADay: a process spends its share of what was left of a quota when it was divided, which does not shrink with what
// it spends since, and what it gives back it can spend again.
func TestShareOfADay(t *testing.T) {
	now := time.Unix(1000, 0)
	d := new(Day)
	d.Add(now, 40)
	d.divide(now, 20, 0.5) // of 200, 140 are left, of which this process may spend 70
	for i, c := range []struct {
		credits int
		ok      bool
	}{{30, true}, {41, false}, {40, true}, {1, false}} {
		if _, ok := d.Spend(now, c.credits, 200); ok != c.ok {
			t.Errorf("call %d for %d credits: %t, expected %t", i, c.credits, ok, c.ok)
		}
	}
	d.Return(now, 30)
	for i, c := range []struct {
		credits int
		ok      bool
	}{{31, false}, {30, true}, {1, false}} {
		if _, ok := d.Spend(now, c.credits, 200); ok != c.ok {
			t.Errorf("after 30 were given back, call %d for %d credits: %t, expected %t", i, c.credits, ok, c.ok)
		}
	}
}
