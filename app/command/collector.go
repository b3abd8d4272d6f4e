package command

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// leastGarbage is how many bytes a server's heap may at least grow between two collections. By
// default it may grow by as much as is in use. That is 11 MB before caches have filled, and
// clients that call contracts then make the collector run five times a second.
const leastGarbage = 64 << 20

// defaultPercent is Go's default of GOGC.
const defaultPercent = 100

// tuner adjusts the garbage collector after each collection.
type tuner struct {
	used []metrics.Sample // bytes as of the last collection, whose sum the percentage is of

	mu      sync.Mutex
	percent int  // guarded by mu: what GOGC is now
	stopped bool // guarded by mu
}

// tuneCollector lets the heap grow by leastGarbage between collections until stop is called,
// unless the environment says otherwise. Once more than that is in use, nothing differs from
// Go's default.
func tuneCollector() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	t := &tuner{used: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}, percent: defaultPercent}
	t.await()
	return t.stop
}

// await adjusts the collector after the next collection, which frees the object made here.
func (t *tuner) await() {
	runtime.AddCleanup(new(*tuner), func(t *tuner) {
		if t.adjust() {
			t.await()
		}
	}, t)
}

// adjust sets the percentage, unless the tuner is stopped, if it has changed by more than a
// tenth: setting it stops all goroutines for a moment.
func (t *tuner) adjust() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	metrics.Read(t.used)
	var sum uint64
	for _, used := range t.used {
		sum += used.Value.Uint64()
	}
	if percent := percentFor(sum); max(percent, t.percent)*10 > min(percent, t.percent)*11 {
		t.percent = percent
		debug.SetGCPercent(percent)
	}
	return true
}

// percentFor returns by how many percent of the bytes in use the heap may grow.
func percentFor(used uint64) int {
	return max(defaultPercent, int(defaultPercent*leastGarbage/max(used, 1<<20)))
}

// stop ends the adjustment.
func (t *tuner) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	debug.SetGCPercent(defaultPercent)
}
