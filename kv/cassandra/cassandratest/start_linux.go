package cassandratest

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// ahead is by how much the niceness of a node is below that of the test's process.
const ahead = 5

// startNode starts a node. The system kills it when the test's process ends, however it ends. If the user may say so, the node gets
// processors before other processes: nodes have machines of their own, and here they share a few processors with all tests, so
// that on a slow machine a statement could take longer than its time.
func startNode(node *exec.Cmd) (err error) {
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // a process begins with the niceness of the thread that starts it
	defer runtime.UnlockOSThread()
	const self = 0
	if before, failed := syscall.Getpriority(syscall.PRIO_PROCESS, self); failed == nil {
		nice := 20 - before // the system call returns 20 less the niceness
		if syscall.Setpriority(syscall.PRIO_PROCESS, self, nice-ahead) == nil {
			defer func() { err = errors.Join(err, syscall.Setpriority(syscall.PRIO_PROCESS, self, nice)) }()
		}
	}
	return node.Start()
}
