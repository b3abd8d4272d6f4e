package cassandra

import (
	"testing"
	"time"
)

// What does not return is not waited for.
func TestInTime(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	if inTime(func() { <-hold }, 10*time.Millisecond) {
		t.Error("it has not returned")
	}
	if !inTime(func() {}, time.Minute) {
		t.Error("it has returned")
	}
}
