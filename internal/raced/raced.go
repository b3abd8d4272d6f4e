// Package raced keeps tests from the race detector for which it can find nothing.
package raced

import "testing"

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
