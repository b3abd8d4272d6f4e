package usage

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/internal/memory"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fixture is a Usage in a store of its own, with a clock.
type fixture struct {
	*testing.T
	fs     *vfs.MemFS
	store  kv.Store
	config Config
	at     atomic.Pointer[time.Time]
	*Usage
}

// newFixture starts ten minutes before the end of a day.
func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, fs: vfs.NewMem(), config: Config{Keep: 30}}
	f.config.Now = func() time.Time { return *f.at.Load() }
	f.set(time.Date(2026, 5, 1, 23, 50, 0, 0, time.UTC))
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func (f *fixture) set(at time.Time)     { f.at.Store(&at) }
func (f *fixture) pass(d time.Duration) { f.set(f.at.Load().Add(d)) }

func (f *fixture) open() {
	f.Helper()
	var err error
	if f.store, err = pebble.Open(pebble.Options{Path: "usage", FS: f.fs}); err != nil {
		f.Fatal(err)
	}
	if f.Usage, err = Open(f.Context(), f.store, f.config); err != nil {
		f.Fatal(err)
	}
}

// crash ends the process without a last flush, and starts it again.
func (f *fixture) crash() {
	f.Helper()
	if err := f.store.Close(); err != nil {
		f.Fatal(err)
	}
	f.open()
}

func (f *fixture) flush() {
	f.Helper()
	if err := f.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(key account.KeyID, network, method string, calls int) {
	s := f.Series(network, method)
	m := f.Meter(key)
	for i := range calls {
		m.Called(s, time.Millisecond, map[bool]int{true: -32000}[i == 0])
		m.Spent(s, 10)
	}
}

// requests returns the numbers of requests by group.
func (f *fixture) requests(q Query) map[string]uint64 {
	f.Helper()
	q.From, q.To = f.at.Load().Add(-48*time.Hour), f.at.Load().Add(time.Hour)
	found, err := f.Read(f.Context(), q)
	if err != nil {
		f.Fatal(err)
	}
	n := make(map[string]uint64)
	for _, l := range found {
		name := l.Network + l.Method
		if !l.Time.IsZero() {
			name += l.Time.Format("02T15")
		}
		if l.Key != (account.KeyID{}) {
			name += l.Key.String()[:2]
		}
		n[name] = l.Requests
	}
	return n
}

var a, b = account.KeyID{0xaa}, account.KeyID{0xbb}

func TestReadGroups(t *testing.T) {
	f := newFixture(t)
	f.count(a, "main/", "call", 3)
	f.count(a, "test/", "call", 2)
	f.count(b, "main/", "logs", 5)
	f.flush()
	f.pass(20 * time.Minute) // the next hour, and the next day
	f.flush()
	f.count(a, "main/", "call", 1)
	f.count(b, "main/", "", 1)
	ab := []account.KeyID{a, b}
	for what, c := range map[string]struct {
		Query
		want map[string]uint64
	}{
		"the sum":            {Query{All: true}, map[string]uint64{"": 12}},
		"of one key":         {Query{Keys: ab[:1]}, map[string]uint64{"": 6}},
		"of several":         {Query{Keys: ab}, map[string]uint64{"": 12}},
		"of none":            {Query{}, map[string]uint64{}},
		"of no key":          {Query{Keys: []account.KeyID{{}}}, map[string]uint64{}},
		"by key":             {Query{Keys: ab, By: ByKey}, map[string]uint64{"aa": 6, "bb": 6}},
		"by network":         {Query{All: true, By: ByNetwork}, map[string]uint64{"main/": 10, "test/": 2}},
		"by method":          {Query{All: true, By: ByMethod}, map[string]uint64{"call": 6, "logs": 5, "": 1}},
		"by both":            {Query{Keys: ab[:1], By: ByNetwork | ByMethod}, map[string]uint64{"main/call": 4, "test/call": 2}},
		"by hour":            {Query{All: true, By: ByHour}, map[string]uint64{"01T23": 10, "02T00": 2}},
		"by day":             {Query{All: true, By: ByDay}, map[string]uint64{"01T00": 10, "02T00": 2}},
		"by day and network": {Query{Keys: ab[:1], By: ByDay | ByNetwork}, map[string]uint64{"main/01T00": 3, "test/01T00": 2, "main/02T00": 1}},
	} {
		if got := f.requests(c.Query); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, expected %v", what, got, c.want)
		}
	}
	lines, err := f.Read(t.Context(), Query{Keys: ab[:1], From: *f.at.Load(), To: *f.at.Load()})
	if err != nil || len(lines) != 1 || lines[0].Requests != 1 || lines[0].Errors != 1 || lines[0].Credits != 10 || !lines[0].Time.IsZero() {
		t.Errorf("the present hour alone: %+v, %v", lines, err)
	}
}

// TestLastUsed: the time of the last use is known until the usage is deleted.
func TestLastUsed(t *testing.T) {
	f := newFixture(t)
	used := *f.at.Load()
	f.count(a, "main", "call", 1)
	f.flush()
	for _, c := range []struct {
		when string
		pass time.Duration
		want time.Time
	}{
		{"at once", 0, used},
		{"an hour later", time.Hour, used},
		{"a week later", 7 * 24 * time.Hour, used},
		{"a month later", 24 * 24 * time.Hour, used},
		{"when it is forgotten", 120 * 24 * time.Hour, time.Time{}},
	} {
		f.pass(c.pass)
		f.flush()
		f.crash()
		for key, want := range map[account.KeyID]time.Time{a: c.want, b: {}} {
			if got, err := f.LastUsed(t.Context(), key); err != nil || !got.Equal(want) {
				t.Errorf("%s: key %s was last used at %v, %v; expected %v", c.when, key, got, err, want)
			}
		}
	}
	f.count(b, "main", "call", 1)
	f.flush()
	if got, err := f.LastUsed(t.Context(), b); err != nil || !got.Equal(*f.at.Load()) {
		t.Errorf("used after the first query: %v, %v", got, err)
	}
}

func TestTodayReadsTheStore(t *testing.T) {
	f := newFixture(t)
	today := func() uint64 {
		t.Helper()
		n, err := f.Today(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	f.pass(-2 * time.Hour)
	f.count(a, "main", "call", 3)
	f.count(b, "main", "call", 3)
	f.flush()
	f.pass(time.Hour)
	f.flush()
	f.count(a, "test", "logs", 2)
	f.flush()
	f.crash()
	if got := today(); got != 50 {
		t.Errorf("%d credits today, expected 50", got)
	}
	f.pass(2 * time.Hour)
	if got := today(); got != 0 {
		t.Errorf("%d credits on the next day, expected 0", got)
	}
}

// A clock that was ahead for a while does not keep later counts out of today's, also after
// the process has started again.
func TestClockThatWasAhead(t *testing.T) {
	f := newFixture(t)
	today := func(want uint64) {
		t.Helper()
		if n, err := f.Today(t.Context(), a); err != nil || n != want {
			t.Errorf("%d credits today, %v; expected %d", n, err, want)
		}
	}
	f.count(a, "main", "call", 1)
	f.flush()
	f.pass(365 * 24 * time.Hour)
	f.flush()
	f.count(a, "main", "call", 1)
	f.flush()
	f.pass(-365 * 24 * time.Hour)
	f.flush()
	f.count(a, "main", "call", 3)
	f.flush()
	today(40)
	f.crash()
	today(40)
	f.count(a, "main", "call", 1)
	f.flush()
	today(50)
	if all := f.requests(Query{All: true})[""]; all != 5 { // not the one a year ahead
		t.Errorf("%d requests around now, expected 5", all)
	}
}

func TestOldUsageIsDropped(t *testing.T) {
	f := newFixture(t)
	f.count(a, "main", "call", 1)
	f.flush()
	for day := range 100 {
		f.pass(24 * time.Hour)
		f.flush()
		f.count(a, "main", "call", 1)
		f.flush()
		if err := f.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, oldest := 0, hourOf(*f.at.Load())
		for row, err := range f.store.Walk(t.Context(), hours, 0) {
			if err != nil {
				t.Fatal(err)
			}
			rows++
			oldest = min(oldest, hourOfSort(row.Sort))
		}
		// Two rows a day: one of the key and one of all keys.
		if kept := int(hourOf(*f.at.Load())-oldest) / 24; rows > 2*64 || kept < min(day, 30) {
			t.Fatalf("day %d: %d rows, the oldest of %d days before", day, rows, kept)
		}
	}
}

// TestRunFlushesAtItsEnd: counts are flushed when Run ends.
func TestRunFlushesAtItsEnd(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Usage.Run(ctx) }()
	f.count(a, "main", "call", 3)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f.crash()
	if got := f.requests(Query{All: true})[""]; got != 3 {
		t.Errorf("%d requests, expected 3", got)
	}
}

// Rows of the earlier form are read; they have neither bytes, refusals nor codes.
func TestEarlierRows(t *testing.T) {
	row := []byte{formPlain, 9, 1, 1, 'n', 1, 'm', 2, 7, 11, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	var got Counts
	last, err := decodeHour(row, func(s series, n Counts) { got = n })
	want := Counts{Requests: 3, Errors: 2, Credits: 7, Time: 11 * time.Microsecond, Latency: [Buckets]uint64{3}}
	if err != nil || last.Unix() != 9 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v at %v, %v; expected %+v", got, last, err, want)
	}
	if _, err := decodeHour([]byte{3, 0, 0}, func(series, Counts) {}); err == nil {
		t.Error("a row of a later form is read")
	}
}

// Failures are counted by cause or by code, through flushes, sums and a start.
func TestFailuresAreSplit(t *testing.T) {
	f := newFixture(t)
	s, m := f.Series("main", "call"), f.Meter(a)
	want := Counts{Requests: 5, Errors: 4, Bytes: 30, Refused: map[Cause]uint64{Rate: 2}, Codes: map[int]uint64{3: 1, -32000: 1}}
	for range 2 {
		m.Refused(s, 0, Rate)
	}
	m.Called(s, 0, 3)
	m.Called(s, 0, 0)
	m.Sent(s, 10)
	f.flush()
	m.Sent(s, 20)
	m.Called(s, 0, -32000)
	for _, step := range []func(){func() {}, f.flush, f.crash, func() { f.pass(time.Hour); f.flush() }, f.crash} {
		step()
		got, err := f.Read(t.Context(), Query{Keys: []account.KeyID{a}, To: f.at.Load().Add(time.Hour)})
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		got[0].Latency = [Buckets]uint64{}
		if !reflect.DeepEqual(got[0].Counts, want) {
			t.Errorf("%+v, expected %+v", got[0].Counts, want)
		}
	}
	var many Counts
	for code := range maxCodes + 10 {
		many.fail(1+code, 1)
	}
	if len(many.Codes) != maxCodes+1 || many.Codes[0] != 10 {
		t.Errorf("%d codes and %d others, expected %d and 10", len(many.Codes), many.Codes[0], maxCodes+1)
	}
	for _, c := range append(Causes(), 200) {
		text, _ := c.MarshalText()
		var back Cause
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("cause %d is %s, which is read as %d, %v", c, text, back, err)
		}
	}
}

// FuzzRows searches for rows that make the decoders panic, or whose encoding differs.
func FuzzRows(f *testing.F) {
	c := calls{series{"main", "eth_call"}: {Requests: 3, Errors: 1, Credits: 20, Time: time.Second, Bytes: 9, Latency: [Buckets]uint64{1, 2}, Refused: map[Cause]uint64{Quota: 1}, Codes: map[int]uint64{-32000: 2, 3: 1}}}
	f.Add(appendHour(nil, time.Unix(1_700_000_000, 0), c))
	f.Add(appendFlush(nil, map[account.KeyID]calls{{1}: c, {2}: {}}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+256*len(row), func() {
			read := make(calls)
			if last, err := decodeHour(row, func(s series, n Counts) { read[s] = n }); err == nil {
				back := make(calls)
				again, err := decodeHour(appendHour(nil, last, read), func(s series, n Counts) { back[s] = n })
				if err != nil || !again.Equal(last) || !reflect.DeepEqual(read, back) {
					t.Fatalf("%x is read as %v, which is encoded as %v, %v", row, read, back, err)
				}
			}
			if read, err := decodeFlush(row); err == nil {
				if back, err := decodeFlush(appendFlush(nil, read)); err != nil || !reflect.DeepEqual(read, back) {
					t.Fatalf("%x is read as %v, which is encoded as %v, %v", row, read, back, err)
				}
			}
		})
	})
}

func BenchmarkCalled(b *testing.B) {
	u := &Usage{byName: make(map[series]Series), meters: make(map[account.KeyID]*Meter)}
	s, m := u.Series("main", "call"), u.Meter(a)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Called(s, 200*time.Microsecond, 0)
			m.Spent(s, 10)
		}
	})
}
