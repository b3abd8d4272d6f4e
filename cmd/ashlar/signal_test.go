package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"ashlar/internal/await"
)

// appears waits for a file of that pattern. It is an error if the process ends before.
func appears(t *testing.T, pattern string, ended <-chan error) {
	t.Helper()
	await.Until(t, pattern, func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the process ended (%v) before there was %s", err, pattern)
		default:
		}
		found, err := filepath.Glob(pattern)
		return err != nil || len(found) > 0
	})
}

// A terminal that is closed sends SIGHUP: the demo takes its temporary directory away. Under
// nohup it goes on.
func TestClosedTerminal(t *testing.T) {
	// What catches a signal hands it on as it is by default: the tests may be under nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, test := range []struct {
		name   string
		nohup  bool
		blocks string
	}{
		{"ends", false, "1000000"},
		{"under nohup", true, "60"},
	} {
		t.Run(test.name, func(t *testing.T) {
			temporary := t.TempDir()
			demo, out := ashlarCommand(t.Context(), "demo", "--listen", "127.0.0.1:0", "--blocks", test.blocks)
			if test.nohup {
				ignoring(t.Context(), demo)
			}
			demo.Env = append(demo.Env, "TMPDIR="+temporary)
			if err := demo.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- demo.Wait() }()
			appears(t, filepath.Join(temporary, "*", "networks", "*"), ended)
			if err := demo.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if test.nohup {
				appears(t, filepath.Join(temporary, "*", "control.sock"), ended)
				if err := demo.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			await.Receive(t, "the end of the demo", ended)
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v\n%s", left, err, out)
			}
		})
	}
}

// ignoring makes a process begin with SIGHUP ignored, as nohup does.
func ignoring(ctx context.Context, c *exec.Cmd) {
	shell := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)...)
	c.Path, c.Args = shell.Path, shell.Args
}
