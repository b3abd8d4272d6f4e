//go:build unix

package follow

import (
	"syscall"
	"testing"

	"ashlar/internal/node"
)

// checkHanging stops the first geth without ending it: its connections stay, and it does not answer. The second
// one answers instead.
func checkHanging(t *testing.T, service *node.Client, u *upstream, second *second) {
	t.Helper()
	second.halt() // it would wait for the first one, too
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(u.process.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	sameAsGeth(t, service, second.running.Public)
}
