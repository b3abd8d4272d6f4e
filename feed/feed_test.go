package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/jsonrpc"
)

// clock is a time that stands still until it is set.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Unix(1e9, 0)} }

func (c *clock) now() time.Time { return c.at }

func mustAdd(t *testing.T, f *Filters[string], caller, query string, bytes int) string {
	t.Helper()
	id, err := f.Add(caller, query, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A filter belongs to the caller that made it, and expires when it is not read.
func TestFilters(t *testing.T) {
	c := newClock()
	f := NewFilters[string](Limits{PerCaller: 2, Unread: time.Minute, Bytes: 100}, c.now)
	first, second := mustAdd(t, f, "a", "one", 1), mustAdd(t, f, "b", "two", 1)
	if query, ok := f.Use("a", first); !ok || query != "one" {
		t.Errorf("the filter has the query %q, %t", query, ok)
	}
	if _, ok := f.Use("b", first); ok {
		t.Error("another's filter can be used")
	}
	if f.Remove("b", first) {
		t.Error("another's filter can be removed")
	}
	c.at = c.at.Add(59 * time.Second)
	if _, ok := f.Use("a", first); !ok {
		t.Error("a filter is gone before its time")
	}
	c.at = c.at.Add(59 * time.Second)
	if _, ok := f.Use("a", first); !ok {
		t.Error("a filter that is read is gone")
	}
	if _, ok := f.Use("b", second); ok {
		t.Error("an expired filter can be used")
	}
	if left := f.Expire(); left != 1 {
		t.Errorf("%d filters are left, expected 1", left)
	}
	c.at = c.at.Add(time.Minute)
	if f.Remove("a", first) {
		t.Error("a filter that has expired was there to be removed")
	}
	if left := f.Expire(); left != 0 || f.held.Held() != 0 || len(f.perCaller) != 0 {
		t.Errorf("%d filters, %d bytes and %d callers are left", left, f.held.Held(), len(f.perCaller))
	}
}

// The filters of a caller are bounded, and their bytes by what all callers leave; expired
// filters do not count.
func TestFiltersAreBounded(t *testing.T) {
	c := newClock()
	f := NewFilters[string](Limits{PerCaller: 2, Unread: time.Minute, Bytes: 100}, c.now)
	refuse := func(caller string, bytes int, want string) {
		t.Helper()
		_, err := f.Add(caller, "", bytes)
		var refused *jsonrpc.Error
		if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeLimitExceeded || !strings.Contains(refused.Message, want) {
			t.Errorf("%d bytes of %s: %v, expected %q", bytes, caller, err, want)
		}
	}
	mustAdd(t, f, "a", "", 10)
	mustAdd(t, f, "a", "", 10)
	refuse("a", 1, "at most 2 of one account")
	refuse("b", 41, "fewer addresses and topics")
	id := mustAdd(t, f, "b", "", 40)
	refuse("c", 21, "fewer addresses and topics")
	mustAdd(t, f, "c", "", 20)
	if !f.Remove("b", id) {
		t.Error("a filter was not there to be removed")
	}
	mustAdd(t, f, "c", "", 20)
	refuse("d", 21, "fewer addresses and topics")
	c.at = c.at.Add(time.Minute) // all expire, which took too many bytes
	mustAdd(t, f, "d", "", 40)
	mustAdd(t, f, "a", "", 1)
	mustAdd(t, f, "a", "", 1)
	c.at = c.at.Add(time.Minute) // all expire, of which one caller had too many
	mustAdd(t, f, "a", "", 1)
}

// All filters that have not expired are listed, and can be removed at once.
func TestAllFilters(t *testing.T) {
	c := newClock()
	f := NewFilters[string](Limits{PerCaller: 2, Unread: time.Minute, Bytes: 100}, c.now)
	expect := func(want ...string) {
		t.Helper()
		if all := slices.Sorted(slices.Values(f.All())); !slices.Equal(all, want) {
			t.Errorf("the filters are %q, expected %q", all, want)
		}
	}
	expect()
	mustAdd(t, f, "a", "expires", 1)
	c.at = c.at.Add(time.Second)
	id := mustAdd(t, f, "a", "one", 1)
	mustAdd(t, f, "b", "two", 1)
	expect("expires", "one", "two")
	c.at = c.at.Add(59 * time.Second)
	expect("one", "two")
	f.Remove("a", id)
	expect("two")
	f.Clear()
	expect()
	if left := f.Expire(); left != 0 || f.held.Held() != 0 || len(f.perCaller) != 0 {
		t.Errorf("%d filters, %d bytes and %d callers are left", left, f.held.Held(), len(f.perCaller))
	}
}

// A journal returns the entries from a position on, each once, until the limits of age and
// bytes drop them.
func TestJournal(t *testing.T) {
	c := newClock()
	j := NewJournal[string](10, time.Minute, c.now)
	expect := func(place uint64, want []string, wantOK bool) {
		t.Helper()
		values, end, ok := j.Since(place)
		if !slices.Equal(values, want) || ok != wantOK || ok && end != j.End() {
			t.Errorf("since %d: %v up to %d, %t; expected %v, %t", place, values, end, ok, want, wantOK)
		}
	}
	expect(0, nil, true)
	j.Append("a", 4)
	j.Append("b", 4)
	expect(0, []string{"a", "b"}, true)
	expect(1, []string{"b"}, true)
	expect(2, nil, true)
	kept, _, _ := j.Since(0)
	j.Append("c", 4) // too much with the first
	expect(0, nil, false)
	expect(1, []string{"b", "c"}, true)
	if !slices.Equal(kept, []string{"a", "b"}) {
		t.Errorf("what was given has changed to %v", kept)
	}
	c.at = c.at.Add(time.Minute)
	j.Append("d", 1)
	expect(1, []string{"b", "c", "d"}, true)
	c.at = c.at.Add(time.Second)
	j.Expire() // all but the last
	expect(1, nil, false)
	expect(3, []string{"d"}, true)
	j.Append("e", 11) // too much by itself
	expect(3, nil, false)
	expect(j.End(), nil, true)
	if j.bytes != 0 || len(j.entries) != 0 {
		t.Errorf("%d entries of %d bytes are left", len(j.entries), j.bytes)
	}
	end := j.End()
	j.Break() // a reader that has read everything also misses what comes next
	expect(end, nil, false)
	expect(j.End(), nil, true)
}

// Against a naive model: a reader that has not fallen behind gets every entry once, in
// order.
func TestJournalModel(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newClock()
		j := NewJournal[int](50, time.Minute, c.now)
		places := make([]uint64, 5)
		for n := range 500 {
			j.Append(n, 1+random.IntN(12))
			c.at = c.at.Add(time.Duration(random.IntN(15)) * time.Second)
			reader := random.IntN(len(places))
			values, end, ok := j.Since(places[reader])
			if !ok {
				end = j.End() // it begins anew
			}
			for i, value := range values {
				if value != int(places[reader])+i {
					t.Fatalf("seed %d: entry %d is %d", seed, int(places[reader])+i, value)
				}
			}
			if end != uint64(n+1) {
				t.Fatalf("seed %d: after %d entries the end is %d", seed, n+1, end)
			}
			places[reader] = end
		}
		if len(j.entries) > 50 {
			t.Errorf("seed %d: %d entries are kept", seed, len(j.entries))
		}
	}
}

// notifier collects streams until the test starts them, as the gateway does once it has
// answered.
type notifier struct {
	refusal error
	streams []jsonrpc.Stream
}

func (n *notifier) Start(stream jsonrpc.Stream) (string, error) {
	if n.refusal != nil {
		return "", n.refusal
	}
	n.streams = append(n.streams, stream)
	return fmt.Sprint("0x", len(n.streams)), nil
}

func (n *notifier) StartSteps(jsonrpc.Step) (string, error) { return "", errors.ErrUnsupported }

func (n *notifier) Stop(string) bool { return false }

// sent records messages, in parts as they come.
type sent struct {
	mu    sync.Mutex
	parts [][][]byte // guarded by mu
	fail  error
}

func (s *sent) send(parts ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, parts)
	return s.fail
}

func (s *sent) messages() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, parts := range s.parts {
		var message string
		for _, part := range parts {
			message += string(part)
		}
		all = append(all, message)
	}
	return all
}

// begin starts a subscription and returns its subscriber.
func begin(t *testing.T, n *notifier, left *bool) *Subscriber {
	t.Helper()
	var s *Subscriber
	ctx := jsonrpc.WithNotifier(t.Context(), n)
	_, err := Subscribe(ctx, "told", func(one *Subscriber) { s = one }, func(*Subscriber) { *left = true })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Results from before the client knows its subscription are sent first, in order; a result
// for many subscribers is one slice in the messages of all.
func TestSubscriber(t *testing.T) {
	n := new(notifier)
	var left [2]bool
	one, other := begin(t, n, &left[0]), begin(t, n, &left[1])
	early, late := []byte("1"), []byte("2")
	one.Notify(early)
	var to [2]sent
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range n.streams {
		running.Go(func() {
			if err := n.streams[i](ctx, fmt.Sprint("0x", i), to[i].send); err != nil {
				t.Error(err)
			}
		})
	}
	await.Until(t, "both to be opened", func() bool { return one.opened() != nil && other.opened() != nil })
	one.Notify(late)
	other.Notify(late)
	stop()
	running.Wait()
	message := `{"jsonrpc":"2.0","method":"told","params":{"subscription":"0x%d","result":%s}}`
	for i, want := range [][]string{{fmt.Sprintf(message, 0, "1"), fmt.Sprintf(message, 0, "2")}, {fmt.Sprintf(message, 1, "2")}} {
		if got := to[i].messages(); !slices.Equal(got, want) {
			t.Errorf("sent %v, expected %v", got, want)
		}
		if !left[i] {
			t.Errorf("subscriber %d has not left", i)
		}
	}
	if &to[0].parts[1][1][0] != &late[0] || &to[1].parts[0][1][0] != &late[0] {
		t.Error("a shared result was copied")
	}
}

// opened returns the send function, nil until the client knows the subscription's ID.
func (s *Subscriber) opened() jsonrpc.Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send
}

// A client is too slow when more results are queued than allowed before its answer is sent.
func TestSubscriberFallsBehind(t *testing.T) {
	n, left := new(notifier), false
	s := begin(t, n, &left)
	for range maxQueued + 1 {
		s.Notify([]byte("1"))
	}
	var to sent
	if err := n.streams[0](t.Context(), "0x1", to.send); !errors.Is(err, jsonrpc.ErrSlow) || len(to.parts) > 0 || !left {
		t.Errorf("the stream ended with %v after %d messages, has left: %t", err, len(to.parts), left)
	}
}

// A client of which notifications were lost is disconnected, and gets none of the later ones, which
// would hide the gap.
func TestSubscriberEnds(t *testing.T) {
	n, left := new(notifier), false
	s := begin(t, n, &left)
	var to sent
	ended := make(chan error)
	go func() { ended <- n.streams[0](t.Context(), "0x1", to.send) }()
	await.Until(t, "it to be opened", func() bool { return s.opened() != nil })
	s.End()
	s.End() // they were lost for another reason, too
	s.Notify([]byte("1"))
	if err := <-ended; !errors.Is(err, jsonrpc.ErrLost) || len(to.messages()) > 0 || !left {
		t.Errorf("the stream ended with %v after %d messages, has left: %t", err, len(to.messages()), left)
	}
}

func TestSubscribeIsRefused(t *testing.T) {
	never := func(*Subscriber) { t.Error("called") }
	if _, err := Subscribe(t.Context(), "told", never, never); err == nil || Supported(t.Context()) == nil {
		t.Error("a connection without notifications has a subscription")
	}
	refusal := errors.New("too many")
	ctx := jsonrpc.WithNotifier(t.Context(), &notifier{refusal: refusal})
	if _, err := Subscribe(ctx, "told", never, never); !errors.Is(err, refusal) || Supported(ctx) != nil {
		t.Errorf("refused with %v", err)
	}
}
