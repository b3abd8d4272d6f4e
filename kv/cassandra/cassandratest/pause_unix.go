//go:build unix

package cassandratest

import (
	"fmt"
	"syscall"
)

// Pause stops a node without ending it: it keeps its connections and does not answer. On a busy machine
// threads go on for a moment, so it waits until all have stopped.
func (c *Cluster) Pause(i int) error {
	process := c.nodes[i].command.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("node %d has not stopped: %v, status %d", i, err, status)
	}
	return nil
}

// Resume continues a node that was paused.
func (c *Cluster) Resume(i int) error { return c.nodes[i].command.Process.Signal(syscall.SIGCONT) }
