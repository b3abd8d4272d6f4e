package cassandra

import (
	"testing"
	"time"
)

// TestClockJumps: between two renewals of a lease the machine's time is set an hour forward.
// Timestamps stay below the promised one, grow, and follow the machine's time after a renewal.
func TestClockJumps(t *testing.T) {
	s := &Store{cluster: &Cluster{config: Config{Lease: DefaultLease}}}
	jumped := time.Now()
	promised := jumped.Add(DefaultLease - time.Hour).UnixMicro()
	s.promised(promised)
	last := int64(0)
	for range 1000 {
		next := s.clock.next()
		if next > promised {
			t.Fatalf("a timestamp is %v after the promised one", time.Duration(next-promised)*time.Microsecond)
		}
		if next <= last {
			t.Fatalf("timestamp %d after %d, expected a greater one", next, last)
		}
		last = next
	}
	s.promised(s.promise())
	if next := s.clock.next(); next < jumped.UnixMicro() {
		t.Errorf("a timestamp is %v old after a renewal", time.Duration(jumped.UnixMicro()-next)*time.Microsecond)
	}
}
