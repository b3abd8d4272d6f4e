package main

import (
	"fmt"
	"syscall"
	"time"
)

// A step is a part of the work whose cost is measured from its beginning on.
type step struct {
	began     time.Time
	processor time.Duration // of the process until the step began
}

func beginStep() step {
	processor, _ := used()
	return step{began: time.Now(), processor: processor}
}

// String says what the step has cost so far, and the memory of the process, whose maximum
// includes the steps before.
func (s step) String() string {
	processor, memory := used()
	return fmt.Sprintf("took %v, %v of processor time; at most %d MiB of memory so far",
		time.Since(s.began).Round(time.Second/10), (processor - s.processor).Round(time.Second/10), memory>>20)
}

// used returns the processor time of the process so far, and its greatest resident memory in
// bytes; zeros if they are unknown.
func used() (processor time.Duration, memory int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), usage.Maxrss << 10
}
