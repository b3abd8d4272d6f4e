package cassandra_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/cassandra"
)

var faults = flag.Bool("faults", false, "also kill and pause nodes, which takes minutes")

// TestFaults takes nodes away one at a time: no read and no write fails. With two of three
// gone, reads fail as unavailable, and succeed again when a node is back.
func TestFaults(t *testing.T) {
	if !*faults {
		t.Skip("needs the flag -faults")
	}
	c := connect(t, configure(t, "faults"))
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	cluster := nodes.Get(t)
	if !cluster.Started() {
		t.Skip("the nodes are not the test's own")
	}
	var written uint64
	work := func(what string) {
		t.Helper()
		slowest := time.Duration(0)
		for range 40 {
			began := time.Now()
			put(t, s, versions, fmt.Sprint("key ", written%7), written, fmt.Sprint(written))
			if err := s.CompareAndSet(t.Context(), fmt.Sprint("pointer ", written), nil, []byte("x")); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			checkWritten(t, s, what, written)
			written++
			slowest = max(slowest, time.Since(began))
		}
		t.Logf("%s: the slowest of 40 rounds took %v", what, slowest.Round(time.Millisecond))
	}
	work("all nodes")
	for lost := range 2 {
		if err := cluster.Kill(lost); err != nil {
			t.Fatal(err)
		}
		work(fmt.Sprintf("node %d killed", lost))
		if err := cluster.Restart(lost); err != nil {
			t.Fatal(err)
		}
		work(fmt.Sprintf("node %d back", lost))
	}
	if err := cluster.Pause(2); err != nil {
		t.Fatal(err)
	}
	work("node 2 paused")

	if err := cluster.Kill(1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, _, err := s.Newest(ctx, versions, []byte("key 1"), written, nil); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("Newest with two of three nodes gone: %v, expected ErrUnavailable", err)
	}
	if err := errors.Join(cluster.Resume(2), cluster.Restart(1)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; {
		_, _, err := s.Newest(t.Context(), versions, []byte("key 1"), written, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, kv.ErrUnavailable) || time.Now().After(end) {
			t.Fatalf("Newest after the nodes are back: %v", err)
		}
	}
	for n := range written { // nothing that was acknowledged is lost
		checkWritten(t, s, "at the end", n)
	}
}

// checkWritten reads what TestFaults has written in one round.
func checkWritten(t *testing.T, s kv.Reader, what string, n uint64) {
	t.Helper()
	value, sort, err := s.Newest(t.Context(), versions, fmt.Append(nil, "key ", n%7), n, nil)
	if err != nil || sort != n || string(value) != fmt.Sprint(n) {
		t.Fatalf("%s: row %d: %d %q, %v", what, n, sort, value, err)
	}
	if _, err := s.Pointer(t.Context(), fmt.Sprint("pointer ", n)); err != nil {
		t.Fatalf("%s: pointer %d: %v", what, n, err)
	}
}
