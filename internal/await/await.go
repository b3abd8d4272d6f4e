// Package await waits in tests for what another goroutine or process does. Every wait has an end:
// a test that waits in vain fails and says for what, instead of running until go test ends it.
package await

import (
	"testing"
	"time"
)

// Patience is how long a wait takes at most. It is far longer than anything takes on a slow and
// busy machine.
const Patience = 5 * time.Minute

// pollEvery is the time between two looks at a condition.
const pollEvery = time.Millisecond

// Until waits until a condition holds. what completes the sentence "waited in vain for".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Receive waits for a value from a channel, or until it is closed.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable") // Fatalf does not return
	}
}
