package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ashlar/internal/await"
	"ashlar/kv/pebble"
)

// TestDirectoryInUse checks that commands name the process that has a store open.
func TestDirectoryInUse(t *testing.T) {
	d := newDataDirectory(t)
	for _, test := range []struct {
		dir     string
		refused [][]string // commands that need the store
		others  [][]string // commands that do not
	}{
		{d.network(), networkCommands(d), [][]string{d.key("create"), d.key("list")}},
		{d.accounts(), [][]string{d.serve(), d.key("list")}, [][]string{d.status(), d.goingOn()}},
	} {
		store, err := pebble.Open(pebble.Options{Path: test.dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range test.refused {
			code, out := runCommand(t, args...)
			if holder := fmt.Sprintf("%s is held by process %d", test.dir, os.Getpid()); code != exitFailed || !strings.Contains(out, holder) {
				t.Errorf("%v: exit code %d, expected %d and %q:\n%s", args, code, exitFailed, holder, out)
			}
		}
		for _, args := range test.others {
			if code, out := runCommand(t, args...); code != exitDone {
				t.Errorf("%v: exit code %d, expected %d\n%s", args, code, exitDone, out)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBesideServer: a server names itself to who would write, and works for the others.
func TestBesideServer(t *testing.T) {
	d := newDataDirectory(t)
	server, out := ashlarCommand(t.Context(), d.serve()...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the control socket", func() bool {
		_, err := os.Stat(filepath.Join(d.path, "control.sock"))
		return err == nil
	})
	if err := server.Process.Signal(syscall.SIGHUP); err != nil { // which does not stop it
		t.Fatal(err)
	}
	for _, args := range [][]string{d.importing(d.genesis), d.goingOn(), d.serve(), d.verify()} {
		code, said := runCommand(t, args...)
		if holder := fmt.Sprint("is held by process ", server.Process.Pid); code != exitFailed || !strings.Contains(said, holder) {
			t.Errorf("%v: exit code %d, expected %d and %q:\n%s", args, code, exitFailed, holder, said)
		}
	}
	for _, args := range [][]string{d.status(), d.key("create"), d.key("list")} {
		if code, said := runCommand(t, args...); code != exitDone {
			t.Errorf("%v: exit code %d, expected %d\n%s", args, code, exitDone, said)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, out)
	}
}
