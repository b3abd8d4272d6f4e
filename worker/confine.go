package worker

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	// Memory is how much a worker can allocate. What goes beyond ends it.
	Memory = 256 << 20
	// maxStack is the stack of a goroutine.
	maxStack = 64 << 20
)

// Confine takes from this process what a worker does not need. It is called once, before
// any work. See docs/reliability.md for what it takes on which system.
func Confine() error {
	// The server decides when its workers end, not a terminal or a service manager: work
	// may go on while the server stops.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(Memory * 3 / 4) // collect garbage before the limit of the system is reached
	// The runtime opens what it needs for timers with the first one.
	time.NewTimer(time.Hour).Stop()
	if err := confine(); err != nil {
		return fmt.Errorf("%s: %w", confineFailed, err)
	}
	return nil
}

// confineFailed begins what a worker says that could not be confined.
const confineFailed = "confine worker"
