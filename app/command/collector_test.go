package command

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// A small heap may grow by leastGarbage, a large one by its own size, and the collector is as
// before once it is stopped.
func TestTunedCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	becomes := func(wanted func(uint64) bool) uint64 {
		for range 500 {
			runtime.GC()
			metrics.Read(percent)
			if wanted(percent[0].Value.Uint64()) {
				break
			}
			time.Sleep(time.Millisecond) // a cleanup runs some time after a collection
		}
		return percent[0].Value.Uint64()
	}
	stop := tuneCollector()
	defer stop()
	raised := func(p uint64) bool { return p > 2*defaultPercent }
	if p := becomes(raised); !raised(p) {
		t.Errorf("with a small heap, GOGC is %d", p)
	}
	standard := func(p uint64) bool { return p == defaultPercent }
	held := make([]byte, 2*leastGarbage)
	if p := becomes(standard); !standard(p) {
		t.Errorf("with %d bytes in use, GOGC is %d", len(held), p)
	}
	runtime.KeepAlive(held)
	held = nil
	if p := becomes(raised); !raised(p) {
		t.Errorf("with a small heap again, GOGC is %d", p)
	}
	stop()
	if p := becomes(standard); !standard(p) {
		t.Errorf("stopped, GOGC is %d", p)
	}
}

// The stacks of many connections do not make the heap grow by more: GOGC is a percentage of
// them, too.
func TestCollectorCountsStacks(t *testing.T) {
	t.Setenv("GOGC", "")
	const goroutines, stack = 1024, 16 << 10
	var deep, end sync.WaitGroup
	done := make(chan struct{})
	for range goroutines {
		deep.Add(1)
		end.Go(func() {
			var held [stack]byte
			deep.Done()
			<-done
			runtime.KeepAlive(&held)
		})
	}
	deep.Wait()
	defer end.Wait()
	defer close(done)
	defer tuneCollector()()
	heap := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	var growth uint64
	for range 500 {
		runtime.GC()
		time.Sleep(time.Millisecond) // a cleanup runs some time after a collection
		metrics.Read(heap)
		growth = heap[2].Value.Uint64() - heap[1].Value.Uint64()
		if p := heap[0].Value.Uint64(); p > defaultPercent && growth < 2*leastGarbage {
			return
		}
	}
	t.Errorf("with stacks of %d bytes, the heap may grow by %d bytes, want about %d", goroutines*stack, growth, leastGarbage)
}

func TestEnvironmentSetsCollector(t *testing.T) {
	t.Setenv("GOGC", "100")
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as the runtime does at the start; the tests may have another GOGC
	defer tuneCollector()()
	runtime.GC()
	time.Sleep(10 * time.Millisecond)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(percent); percent[0].Value.Uint64() != defaultPercent {
		t.Errorf("GOGC is %d although the environment sets it", percent[0].Value.Uint64())
	}
}
