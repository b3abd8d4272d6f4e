// Package memory checks that decoders do not allocate more than a bound derived from the size of
// their input.
package memory

import (
	"runtime/metrics"
	"testing"
)

// Slack is an allowance for buffers of fixed size and for the runtime's granularity of
// measurement.
const Slack = 1 << 20

// Within calls decode and fails the test if it allocates more than a number of bytes, including
// garbage.
//
// The measurement includes allocations by other goroutines, so decode is called again before the
// test fails.
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

// allocated returns the bytes allocated by this process so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
