package cassandra_test

import (
	"slices"
	"testing"
	"time"

	"ashlar/kv/cassandra"
)

// TestPostAfterSetBack: the time of a machine is set back by an hour. What its process posts next replaces what it
// has posted before.
func TestPostAfterSetBack(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	s := open(t, c, newName(t), cassandra.Options{Shared: true})
	defer s.Close()
	if err := s.SetBack(t.Context(), time.Hour, "me", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), "me", []byte("after"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if posts, err := s.Posts(t.Context()); err != nil || string(posts["me"]) != "after" {
		t.Errorf("%q, %v, expected the last post", posts, err)
	}
}

// TestRemovalBehind: one process of a shared store has a clock that is an hour ahead. Another one removes its rows.
func TestRemovalBehind(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	ahead, behind := open(t, c, name, cassandra.Options{Shared: true}), open(t, c, name, cassandra.Options{Shared: true})
	defer ahead.Close()
	defer behind.Close()
	if err := ahead.SetBack(t.Context(), time.Hour, "ahead", nil); err != nil {
		t.Fatal(err)
	}
	for sort := range uint64(4) {
		put(t, ahead, transient, "p", sort, "row")
	}
	b := behind.NewBatch()
	b.Delete(transient, []byte("p"), 0)
	b.DeleteRange(transient, []byte("p"), 2, 9)
	if err := behind.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	check := func(what string, want ...uint64) {
		t.Helper()
		var got []uint64
		rows := ahead.Scan(t.Context(), transient, []byte("p"), 0, 9)
		for rows.Next() {
			got = append(got, rows.Sort())
		}
		if err := rows.Close(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: rows %d, %v, expected %d", what, got, err, want)
		}
	}
	check("after removals", 1)
	if err := behind.Drop(t.Context(), transient, []byte("p")); err != nil {
		t.Fatal(err)
	}
	check("after Drop")
}
