package cassandra_test

import (
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
