package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoServersInOneDirectory: two processes of a cluster, whose stores are elsewhere, may be given the same directory. The
// second one is refused, and the first one keeps its socket, until it ends.
func TestTwoServersInOneDirectory(t *testing.T) {
	dir := shortDir(t)
	service, _ := openService(t)
	stop := serve(t, dir, service)
	if _, err := Listen(dir, service, Process{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v, want %v", err, ErrInUse)
	}
	var s status
	if err := dial(t, dir).Status(t.Context(), &s); err != nil || len(s.Networks) != 1 {
		t.Errorf("the first server: %+v, %v", s, err)
	}
	stop()
	serve(t, dir, service)()
}

func TestSocketBelongsToItsOwnerAndGoesWithTheServer(t *testing.T) {
	dir := shortDir(t)
	service, _ := openService(t)
	stop := serve(t, dir, service)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != socketName {
		t.Fatalf("in the directory: %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	stop()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := shortDir(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(context.Background(), dir); err == nil {
		t.Error("connected to a socket without a listener")
	}
	service, _ := openService(t)
	defer serve(t, dir, service)()
	if _, err := dial(t, dir).Service().Keys.List(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestFileInTheWayIsLeftAlone(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, socketName)
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(dir, Service{}, Process{}); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("error %v", err)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "mine" {
		t.Errorf("the file holds %q, %v", kept, err)
	}
}

func TestLongDataDirectory(t *testing.T) {
	dir := filepath.Join(shortDir(t), strings.Repeat("d", 120), strings.Repeat("e", 120))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	service, _ := openService(t)
	s, err := Listen(dir, service, Process{})
	if err != nil {
		if !strings.Contains(err.Error(), "too long for a socket") {
			t.Error(err)
		}
		return // this system cannot shorten the path
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if _, err := dial(t, dir).Service().Keys.List(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
