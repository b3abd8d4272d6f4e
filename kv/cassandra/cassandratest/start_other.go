//go:build !linux

package cassandratest

import "os/exec"

// startNode starts a node. It outlives a test's process that is killed.
func startNode(node *exec.Cmd) error { return node.Start() }
