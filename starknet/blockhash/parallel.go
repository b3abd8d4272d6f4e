package blockhash

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// hashesAtOnce is how many items one goroutine takes at a time, and below how many
// no other goroutine is worth its cost.
const hashesAtOnce = 16

// inParallel does something for each index below n, on every processor that is
// free, and returns when all of it is done.
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
