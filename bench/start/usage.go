package main

import (
	"fmt"
	"time"

	"ashlar/internal/usage"
)

// A step is a part of the work whose cost is measured from its beginning on.
type step struct {
	began     time.Time
	processor time.Duration // of the process until the step began
}

func beginStep() step {
	return step{began: time.Now(), processor: usage.Read().Processor}
}

// String says what the step has cost so far, and the memory of the process, whose maximum
// includes the steps before.
func (s step) String() string {
	now := usage.Read()
	return fmt.Sprintf("took %v, %v of processor time; at most %d MiB of memory so far",
		time.Since(s.began).Round(time.Second/10), (now.Processor - s.processor).Round(time.Second/10), now.PeakMemory>>20)
}
