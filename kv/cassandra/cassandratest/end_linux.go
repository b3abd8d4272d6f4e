package cassandratest

import (
	"os/exec"
	"syscall"
)

// endWithTest has the system kill a node when the test's process ends, however it ends.
func endWithTest(node *exec.Cmd) { node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
