package cassandra_test

import (
	"errors"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// TestLease has a second process wait for the first one's lease, in each way in which that
// can end.
func TestLease(t *testing.T) {
	config := configure(t, "contract")
	config.Lease = 5 * time.Second // the default is longer than a test should wait
	c := connect(t, config)
	name := newName(t)
	first := open(t, c, name, cassandra.Options{})
	if _, err := c.Open(t.Context(), name, kv.Options{}, cassandra.Options{}); !errors.Is(err, kv.ErrInUse) {
		t.Fatalf("second writer: %v, expected ErrInUse", err)
	}
	put(t, first, versions, "p", 1, "one")
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	paused := open(t, c, name, cassandra.Options{}) // at once
	defer paused.Close()
	if err := paused.CompareAndSet(t.Context(), "head", nil, []byte("before")); err != nil {
		t.Fatal(err)
	}
	paused.Pause()
	second := takeOver(t, c, name)
	defer second.Close()
	if err := second.CompareAndSet(t.Context(), "head", []byte("before"), []byte("after")); err != nil {
		t.Fatal(err)
	}
	// It has not noticed yet, and writes nothing: neither alone nor with a row.
	if err := paused.CompareAndSet(t.Context(), "head", []byte("after"), []byte("paused")); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("CompareAndSet of a writer that has lost its lease: %v, expected ErrFailed", err)
	}
	b := paused.NewBatch()
	b.SetPointer("head", []byte("paused"))
	b.Put(versions, []byte("p"), 2, []byte("paused"))
	paused.Resume()
	if err := paused.Write(t.Context(), b); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("Write of a writer that has lost its lease: %v, expected ErrFailed", err)
	}
	select {
	case <-paused.Lost():
	default:
		t.Error("the loss of the lease is not announced")
	}
	if value, err := second.Pointer(t.Context(), "head"); err != nil || string(value) != "after" {
		t.Errorf("pointer %q, %v, expected that of the second writer", value, err)
	}
	if _, err := second.Get(t.Context(), versions, []byte("p"), 2, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("row of a writer that has noticed its loss: %v, expected ErrNotFound", err)
	}
}

// TestLateAttempt has a node make an attempt after the writer has given it up and gone on. It
// must not undo what came after.
func TestLateAttempt(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	set := func(old []byte, value string) {
		t.Helper()
		if err := s.CompareAndSet(t.Context(), "head", old, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	set(nil, "one")
	late := s.Late("head", "late")
	set([]byte("one"), "two")
	if applied, err := late(t.Context()); applied || err != nil {
		t.Errorf("a late attempt: applied %t, %v", applied, err)
	}
	set([]byte("two"), "three")
	// One that nothing has followed yet is made, and the writer goes on from there.
	if applied, err := s.Late("head", "late")(t.Context()); !applied || err != nil {
		t.Errorf("an attempt in time: applied %t, %v", applied, err)
	}
	if err := s.CompareAndSet(t.Context(), "head", []byte("three"), []byte("four")); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("CompareAndSet of a value that is gone: %v, expected ErrConflict", err)
	}
	set([]byte("late"), "four")
}

// takeOver opens a store as soon as its lease has ended.
func takeOver(t *testing.T, c *cassandra.Cluster, name string) *cassandra.Store {
	t.Helper()
	for deadline := time.Now().Add(await.Patience); ; time.Sleep(100 * time.Millisecond) {
		s, err := c.Open(t.Context(), name, kv.Options{}, cassandra.Options{})
		if err == nil {
			return s
		}
		if !errors.Is(err, kv.ErrInUse) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestShared has two processes write to one store.
func TestShared(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	one, two := open(t, c, name, cassandra.Options{Shared: true}), open(t, c, name, cassandra.Options{Shared: true})
	defer one.Close()
	defer two.Close()
	put(t, one, list, "p", 1, "one")
	put(t, two, list, "p", 2, "two")
	for _, s := range []*cassandra.Store{one, two} {
		for sort, want := range map[uint64]string{1: "one", 2: "two"} {
			if value, err := s.Get(t.Context(), list, []byte("p"), sort, nil); err != nil || string(value) != want {
				t.Errorf("row %d: %q, %v, expected %q", sort, value, err, want)
			}
		}
	}
	if err := one.CompareAndSet(t.Context(), "format", nil, []byte("x")); err != nil {
		t.Error(err)
	}
	if err := two.CompareAndSet(t.Context(), "format", nil, []byte("y")); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("second CompareAndSet: %v, expected ErrConflict", err)
	}
}
