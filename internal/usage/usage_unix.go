//go:build unix

package usage

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// Read returns what the process has used so far, or zeros where the system does not say.
func Read() Used {
	var raw syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &raw); err != nil {
		return Used{}
	}
	return Used{Processor: processor(&raw), PeakMemory: peakMemory(&raw)}
}

// PeakMemory returns the greatest resident memory of a child that has ended, in bytes, or 0 where the system does not say.
func PeakMemory(ended *os.ProcessState) int64 {
	if raw, ok := ended.SysUsage().(*syscall.Rusage); ok {
		return peakMemory(raw)
	}
	return 0
}

// ThreadProcessor returns the processor time of the calling thread, which a goroutine keeps by
// runtime.LockOSThread; 0 where the system does not say.
func ThreadProcessor() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux and FreeBSD
	var raw syscall.Rusage
	if err := syscall.Getrusage(thread, &raw); err != nil {
		return 0
	}
	return processor(&raw)
}

func processor(raw *syscall.Rusage) time.Duration {
	return time.Duration(raw.Utime.Nano() + raw.Stime.Nano())
}

func peakMemory(raw *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(raw.Maxrss) // counts bytes
	}
	return int64(raw.Maxrss) << 10 // others count KiB
}
