package usage

import (
	"reflect"
	"testing"
	"time"

	"ashlar/account"
)

// The last hour can be read by minute, also after a start, within a bound of memory.
func TestMinutes(t *testing.T) {
	f := newFixture(t)
	f.set(time.Date(2026, 5, 1, 22, 30, 10, 0, time.UTC))
	byMinute := func() map[string]uint64 {
		t.Helper()
		found, err := f.Read(t.Context(), Query{Keys: []account.KeyID{a}, From: f.at.Load().Add(-time.Hour), To: *f.at.Load(), By: ByMinute})
		if err != nil {
			t.Fatal(err)
		}
		n := make(map[string]uint64)
		for _, l := range found {
			n[l.Time.Format("15:04")] += l.Requests
		}
		return n
	}
	is := func(when string, want map[string]uint64) {
		t.Helper()
		if got := byMinute(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, expected %v", when, got, want)
		}
	}
	f.count(a, "main", "call", 1)
	f.count(b, "main", "call", 9)
	is("not flushed", map[string]uint64{"22:30": 1})
	f.flush()
	f.pass(30 * time.Second)
	f.count(a, "main", "logs", 2)
	f.flush()
	f.pass(time.Minute)
	f.count(a, "main", "call", 4)
	f.flush()
	is("two minutes", map[string]uint64{"22:30": 3, "22:31": 4})
	f.crash()
	is("after a start", map[string]uint64{"22:30": 3, "22:31": 4})
	f.pass(-30 * time.Second) // the clock is set back a little
	f.count(a, "main", "call", 1)
	is("the clock is set back", map[string]uint64{"22:30": 3, "22:31": 5})
	f.pass(59 * time.Minute)
	f.count(a, "main", "call", 6)
	f.flush()
	is("an hour later", map[string]uint64{"22:30": 3, "22:31": 5, "23:30": 6})
	f.pass(2 * time.Minute)
	is("more than an hour later", map[string]uint64{"23:30": 6})

	f.Usage.minutes.most = 10 * (minuteRowBytes + 60)
	for range 100 {
		f.pass(time.Minute)
		f.count(a, "main", "call", 1)
		f.flush()
	}
	if n := len(byMinute()); n < 5 || n > 15 || f.Usage.minutes.bytes > f.Usage.minutes.most {
		t.Errorf("%d minutes in %d bytes, expected about 10 in at most %d", n, f.Usage.minutes.bytes, f.Usage.minutes.most)
	}
}

func TestQuantiles(t *testing.T) {
	var c Counts
	if c.Mean() != 0 || c.Quantile(0.5) != 0 {
		t.Error("of no requests")
	}
	for range 90 {
		c.Add(Counts{Requests: 1, Time: 2 * time.Millisecond, Latency: [Buckets]uint64{3: 1}})
	}
	for range 10 {
		c.Add(Counts{Requests: 1, Time: 5 * time.Second, Latency: [Buckets]uint64{10: 1}})
	}
	if got := c.Quantile(0.45); got != 2*time.Millisecond {
		t.Errorf("the 45th of 100: %v", got)
	}
	if got := c.Quantile(0.95); got != 3*time.Second {
		t.Errorf("the 95th of 100: %v", got)
	}
	if got := c.Mean(); got != 501800*time.Microsecond {
		t.Errorf("on average %v", got)
	}
	for i, bound := range Bounds() {
		if bucketOf(bound-1) != i || bucketOf(bound) != i+1 {
			t.Errorf("%v is of the wrong class", bound)
		}
	}
}
