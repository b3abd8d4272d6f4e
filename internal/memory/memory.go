// Package memory holds decoders to a bound on what they allocate, derived from
// the size of what they are given.
package memory

import (
	"runtime/metrics"
	"testing"
)

// Slack is what a decoder may allocate besides, whatever it is given: buffers of
// a fixed size, and how exactly the runtime counts.
const Slack = 2 << 20

// Within calls decode and ends the test if that allocates more bytes, what is
// garbage at once included, than factor for each of size bytes, and Slack.
//
// What other goroutines allocate meanwhile is counted too, so decode is called
// again before it is blamed.
func Within(t testing.TB, factor, size int, decode func()) {
	t.Helper()
	bound := uint64(factor)*uint64(size) + Slack
	var took uint64
	for range 2 {
		before := allocated()
		decode()
		if took = allocated() - before; took <= bound {
			return
		}
	}
	t.Fatalf("%d bytes allocated for an input of %d, expected at most %d for each and %d", took, size, factor, Slack)
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
