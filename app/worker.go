package app

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"ashlar/evm/trace/script"
	"ashlar/worker"
)

// WorkerCommand is the command with which the program starts itself as a worker.
const WorkerCommand = "worker"

// newWorkers returns the pool of the service's workers.
func newWorkers() (*worker.Pool, error) {
	program := "/proc/self/exe" // this program, even if its file was replaced by an update
	if runtime.GOOS != "linux" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the program to start workers with: %w", err)
		}
	}
	return worker.NewPool(worker.DefaultSize(), program, WorkerCommand), nil
}

// Work makes the process a worker: it does what the service writes to in, until in ends.
func Work(in io.Reader, out io.Writer) error {
	if err := worker.Confine(); err != nil {
		return err
	}
	return script.Serve(in, out)
}
