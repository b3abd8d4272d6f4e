//go:build !unix

package follow

import (
	"testing"

	"ashlar/internal/node"
)

// checkHanging does nothing: the system cannot stop a process without ending it.
func checkHanging(*testing.T, *node.Client, *upstream, *second) {}
