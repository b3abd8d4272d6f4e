// Package usage measures what the running process has used of the machine.
package usage

import (
	"syscall"
	"time"
)

// Used is what the process has used since it began.
type Used struct {
	Processor  time.Duration // of the program, and of the system on its behalf
	PeakMemory int64         // greatest resident memory, in bytes
}

// Read returns what the process has used so far, or zeros where the system does not say.
func Read() Used {
	var raw syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &raw); err != nil {
		return Used{}
	}
	return Used{
		Processor:  time.Duration(raw.Utime.Nano() + raw.Stime.Nano()),
		PeakMemory: raw.Maxrss << 10, // Linux counts KiB
	}
}

// ThreadProcessor returns the processor time of the calling thread, which a goroutine keeps by
// runtime.LockOSThread; 0 where the system does not say.
func ThreadProcessor() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	var raw syscall.Rusage
	if err := syscall.Getrusage(thread, &raw); err != nil {
		return 0
	}
	return time.Duration(raw.Utime.Nano() + raw.Stime.Nano())
}
