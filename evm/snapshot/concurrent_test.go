package snapshot_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
)

// amid is a context that calls a function once, when it has been asked a number of times.
type amid struct {
	context.Context
	left int
	call func()
}

func (a *amid) Err() error {
	if a.left--; a.left == 0 {
		a.call()
	}
	return a.Context.Err()
}

// TestCreateTwice: a snapshot is refused a folder that another one is writing to, whatever that one
// has done so far, and a folder in which another one was completed since its own check.
func TestCreateTwice(t *testing.T) {
	m := newMaker(t)
	head, from := uint64(headNumber), uint64(startNumber)
	folder := filepath.Join(t.TempDir(), "out")
	prepare := func() *snapshot.Creator {
		c, err := snapshot.New(t.Context(), m.whole, snapshot.Options{Folder: folder, Head: &head, From: &from, ChunkBytes: 2000})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	tried := 0
	for asked := 1; ; asked *= 5 {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		early := prepare()
		ctx := &amid{Context: t.Context(), left: asked}
		ctx.call = func() {
			tried++
			if err := m.make(folder, startNumber, startNumber); !errors.Is(err, snapshot.ErrFolder) || !strings.Contains(err.Error(), "another") {
				t.Errorf("another snapshot was made beside the first: %v", err)
			}
		}
		if _, err := prepare().Run(ctx); err != nil {
			t.Fatal(err)
		}
		whole := contents(t, folder)
		if _, err := early.Run(t.Context()); !errors.Is(err, snapshot.ErrFolder) || len(contents(t, folder)) != len(whole) {
			t.Errorf("a snapshot was made over another: %v", err)
		}
		if _, err := m.load(t.Context(), ingesttest.Store(t), folder, headNumber); err != nil {
			t.Errorf("the first snapshot, after another one at step %d: %v", asked, err)
		}
		if ctx.left > 0 {
			break
		}
	}
	if tried < 4 {
		t.Errorf("the first snapshot was interrupted %d times, want 4 or more", tried)
	}
}

// waitsIn is the environment variable with a folder in which a process of this test begins a snapshot.
const waitsIn = "ASHLAR_TEST_SNAPSHOT_WAITS_IN"

// TestCreateInTwoProcesses: the folder belongs to the process that writes to it, until it is killed.
func TestCreateInTwoProcesses(t *testing.T) {
	m := newMaker(t)
	if folder := os.Getenv(waitsIn); folder != "" {
		m.waitIn(folder)
	}
	folder := filepath.Join(t.TempDir(), "out")
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), waitsIn+"="+folder)
	says, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(says, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	before := contents(t, folder)
	if err := m.make(folder, headNumber, startNumber); !errors.Is(err, snapshot.ErrFolder) || len(contents(t, folder)) != len(before) {
		t.Errorf("a snapshot was made beside that of another process: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	if err := m.make(folder, headNumber, startNumber); err != nil {
		t.Errorf("after the other process was killed: %v", err)
	}
	if _, err := m.load(t.Context(), ingesttest.Store(t), folder, headNumber); err != nil {
		t.Error(err)
	}
}

// waitIn begins a snapshot, says so and waits to be killed.
func (m *maker) waitIn(folder string) {
	from := uint64(startNumber)
	c, err := snapshot.New(m.t.Context(), m.whole, snapshot.Options{Folder: folder, Head: &from, From: &from, ChunkBytes: 2000})
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = c.Run(&amid{Context: m.t.Context(), left: 10, call: func() {
		os.Stdout.WriteString("w")
		select {}
	}})
	m.t.Fatal(err)
}
