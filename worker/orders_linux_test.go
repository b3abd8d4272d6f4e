package worker_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// linuxOrders are orders to reach this process with calls that a worker needs for itself.
func linuxOrders() []string {
	return []string{fmt.Sprint("signal a thread of ", os.Getpid()), fmt.Sprint("have a pipe signal ", os.Getpid())}
}

func obeyLinux(order string) error {
	if order == "kill" {
		return syscall.Kill(os.Getpid(), 0)
	}
	var pid int
	if _, err := fmt.Sscan(order[strings.LastIndexByte(order, ' ')+1:], &pid); err != nil {
		return nil
	}
	if strings.HasPrefix(order, "have a pipe signal") {
		_, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_SETOWN, pid)
		return err
	}
	return unix.Tgkill(pid, pid, syscall.Signal(0))
}
