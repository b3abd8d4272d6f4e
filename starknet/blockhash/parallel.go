package blockhash

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// hashesAtOnce is the number of items that a goroutine takes at a time, and the number above
// which another goroutine is worth its cost.
const hashesAtOnce = 16

// inParallel calls do for each index below n, using all processors, and returns when all calls
// have returned.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(hashesAtOnce))
			for i := end - hashesAtOnce; i < min(end, n); i++ {
				do(i)
			}
			if end >= n {
				return
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+hashesAtOnce-1)/hashesAtOnce) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
