// Package memory holds decoders to a bound on what they allocate, derived from
// the size of what they are given.
package memory

import (
	"runtime/metrics"
	"testing"
)

// Slack is what a decoder may allocate besides, whatever it is given: buffers of
// a fixed size, and how exactly the runtime counts.
const Slack = 1 << 20

// Within calls decode and ends the test if that allocates more than so many bytes,
// what is garbage at once included.
//
// What other goroutines allocate meanwhile is counted too, so decode is called
// again before it is blamed.
func Within(t testing.TB, bytes int, decode func()) {
	t.Helper()
	var took uint64
	for range 2 {
		before := allocated()
		decode()
		if took = allocated() - before; took <= uint64(bytes) {
			return
		}
	}
	t.Fatalf("%d bytes allocated, expected at most %d", took, bytes)
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
