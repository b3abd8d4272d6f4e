package api

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ashlar/feed"
	"ashlar/internal/raced"
	"ashlar/parameter"
)

// heap returns the bytes of live objects.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// manyAddresses is a filter object with n addresses, or topics, that begin at first.
func manyAddresses(first, n int) []byte { return []byte(`{"address":[` + words(first, n, 20) + `]}`) }
func manyTopics(first, n int) []byte    { return []byte(`{"topics":[[` + words(first, n, 32) + `]]}`) }

func words(first, n, size int) string {
	var b strings.Builder
	for i := range n {
		word := make([]byte, size)
		binary.BigEndian.PutUint64(word, uint64(first+i)*0x9E3779B97F4A7C15)
		fmt.Fprintf(&b, `,"0x%x"`, word)
	}
	return b.String()[1:]
}

// check fails if fewer bytes are counted than taken, a twentieth aside.
func check(t *testing.T, what string, counted, taken int) {
	t.Helper()
	t.Logf("%s: %d bytes counted, %d taken", what, counted, taken)
	if counted < taken-taken/20 {
		t.Errorf("%s: %d bytes are counted, expected %d or more", what, counted, taken)
	}
}

// Filters and subscriptions count for at least the memory that they take.
func TestFiltersCountWhatTheyTake(t *testing.T) {
	raced.Skip(t)
	for _, c := range []struct {
		name    string
		object  func(first, n int) []byte
		filters int // so many that what the runtime allocates beside them is negligible
		each    int
		overlap bool
	}{
		{"addresses", manyAddresses, 20, 5000, false},
		{"topics", manyTopics, 20, 5000, false},
		{"the same addresses", manyAddresses, 20, 5000, true},
		{"the same topics", manyTopics, 20, 5000, true},
		{"one address", manyAddresses, 2000, 1, false},
		{"few addresses", manyAddresses, 2000, 9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			parse := func(i int) (parameter.LogFilter, watchedLogs) {
				first := i * c.each
				if c.overlap {
					first = 0
				}
				asked, err := parameter.ParseLogFilter(c.object(first, c.each))
				if err != nil {
					t.Fatal(err)
				}
				watched, err := watch(&asked)
				if err != nil {
					t.Fatal(err)
				}
				return asked, watched
			}
			var polled []*polledFilter
			counted, before := 0, heap()
			for i := range c.filters {
				asked, watched := parse(i)
				polled = append(polled, &polledFilter{asked: asked, watchedLogs: watched})
				counted += filterBytes + asked.Bytes()
			}
			taken := heap() - before
			check(t, "polled", counted, taken)
			runtime.KeepAlive(polled)
			polled = nil
			index := newLogSubscribers(1 << 40)
			before = heap()
			for i := range c.filters {
				asked, watched := parse(i)
				one, err := index.reserve("a", asked, watched)
				if err != nil {
					t.Fatal(err)
				}
				one.Subscriber = new(feed.Subscriber)
				index.add(one)
			}
			taken = heap() - before
			check(t, "subscribed", index.held.Held(), taken)
			runtime.KeepAlive(index)
		})
	}
}
