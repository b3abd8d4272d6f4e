package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// TestSplitCutOff ends a Write when the start of a part is stored, before it knows. The rows of the next Writes must be found
// by readers that know the start.
func TestSplitCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := make(chan struct{})
	var once sync.Once
	config := configure(t, "contract")
	config.SplitBytes = 64 << 10 // so that small rows are not counted
	config.ObserveStatements(func(_ context.Context, statement string) {
		if strings.HasPrefix(statement, "INSERT INTO ashlar_splits") {
			once.Do(func() {
				cancel()
				<-returned
			})
		}
	})
	c := connect(t, config)
	name := newName(t)
	s := open(t, c, name, cassandra.Options{})
	defer s.Close()
	put(t, s, list, "wide", 1, strings.Repeat("a", int(config.SplitBytes)))
	b := s.NewBatch()
	b.Put(list, []byte("wide"), 2, make([]byte, config.SplitBytes))
	err := s.Write(ctx, b)
	close(returned)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the write that begins a part: %v, expected that it is cut off", err)
	}
	const last = 6
	for n := uint64(3); n <= last; n++ {
		put(t, s, list, "wide", n, fmt.Sprint("value ", n))
	}
	reader, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if parts, err := reader.Parts(t.Context(), list, []byte("wide")); err != nil || parts != 2 {
		t.Errorf("%d parts, %v, expected 2", parts, err)
	}
	for what, r := range map[string]kv.Reader{"writer": s, "reader": reader} {
		for n := uint64(3); n <= last; n++ {
			if value, err := r.Get(t.Context(), list, []byte("wide"), n, nil); err != nil || string(value) != fmt.Sprint("value ", n) {
				t.Errorf("%s: row %d: %q, %v", what, n, value, err)
			}
		}
	}
}

// TestSplitOfADeadWriter: a writer dies when the start of a part has reached one replica, which the next writer does not ask.
// The rows of this one must be found by readers and writers that do ask it.
func TestSplitOfADeadWriter(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	for name, before := range map[string][]uint64{
		"the first part": nil, "a later part": {5}, "after one that is complete": {5, 7},
	} {
		t.Run(name, func(t *testing.T) {
			name := newName(t)
			dead := open(t, c, name, cassandra.Options{})
			put(t, dead, list, "wide", 1, "value 1")
			for _, at := range before {
				reach, err := dead.BeginPart(t.Context(), list, []byte("wide"), at)
				if err == nil {
					err = reach(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				put(t, dead, list, "wide", at, fmt.Sprint("value ", at))
			}
			reach, err := dead.BeginPart(t.Context(), list, []byte("wide"), 10)
			if err != nil {
				t.Fatal(err)
			}
			if err := dead.Close(); err != nil {
				t.Fatal(err)
			}
			next := open(t, c, name, cassandra.Options{})
			for n := uint64(10); n <= 14; n++ {
				put(t, next, list, "wide", n, fmt.Sprint("value ", n))
			}
			if err := reach(t.Context()); err != nil {
				t.Fatal(err)
			}
			reader, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			checkFound(t, "reader", reader, append([]uint64{1, 10, 11, 12, 13, 14}, before...))
			if err := next.Close(); err != nil {
				t.Fatal(err)
			}
			third := open(t, c, name, cassandra.Options{})
			defer third.Close()
			checkFound(t, "next writer", third, append([]uint64{1, 10, 11, 12, 13, 14}, before...))
		})
	}
}

func checkFound(t *testing.T, who string, r kv.Reader, rows []uint64) {
	t.Helper()
	for _, n := range rows {
		if value, err := r.Get(t.Context(), list, []byte("wide"), n, nil); err != nil || string(value) != fmt.Sprint("value ", n) {
			t.Errorf("%s: row %d: %q, %v", who, n, value, err)
		}
	}
}
