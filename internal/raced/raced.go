// Package raced helps tests with the race detector, and keeps those from it for which it can find nothing.
package raced

import (
	"sync"
	"testing"
)

// Skip skips a test if the program has the race detector, which makes it several times
// slower. It is for long tests whose work is done by one goroutine, or by goroutines that
// shorter tests of the package start too. .ci/run runs what is skipped again without the
// detector.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("runs without the race detector")
	}
}

// Together calls each function a few times, in a goroutine of its own, and returns when all are done. A goroutine that
// called several would order their accesses by the locks of the others, and hide one that lacks its lock.
func Together(calls ...func()) {
	var running sync.WaitGroup
	for _, call := range calls {
		running.Go(func() {
			for range 30 {
				call()
			}
		})
	}
	running.Wait()
}
