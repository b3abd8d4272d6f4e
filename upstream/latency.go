package upstream

import (
	"math"
	"time"
)

const (
	shortest = 250 * time.Microsecond // upper bound of the first class
	classes  = 40                     // each is √2 times as long as the one before; the last is 3 minutes
	remember = 256                    // answers; older ones count less and less
	enough   = 16                     // answers that say what is usual
)

// latencies is a histogram of the latest answers. The zero value is empty.
type latencies struct {
	counts [classes]float32
	sum    float32
}

func (l *latencies) add(length time.Duration) {
	class := 0
	if length > shortest {
		class = min(classes-1, int(math.Ceil(2*math.Log2(float64(length)/float64(shortest)))))
	}
	l.counts[class]++
	if l.sum++; l.sum < remember {
		return
	}
	l.sum = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.sum += l.counts[i]
	}
}

// quantile returns an upper bound of the time of a share of the answers, and false if too
// few are known.
func (l *latencies) quantile(share float32) (time.Duration, bool) {
	if l.sum < enough {
		return 0, false
	}
	below := float32(0)
	for class, count := range l.counts {
		if below += count; below >= share*l.sum {
			return time.Duration(float64(shortest) * math.Pow(2, float64(class)/2)), true
		}
	}
	return time.Duration(float64(shortest) * math.Pow(2, (classes-1)/2.0)), true
}
