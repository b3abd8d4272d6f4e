package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asCommand makes a process of these tests the program itself.
const asCommand = "ASHLAR_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// ashlarCommand makes a process of the program; its output goes to the buffer.
func ashlarCommand(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// runCommand runs the program as a process, and returns its exit code and output. A command
// that does not end, such as a server that should have been refused, is killed.
func runCommand(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, out := ashlarCommand(ctx, args...)
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String()
}
