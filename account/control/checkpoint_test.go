package control

import (
	"context"
	"errors"
	"testing"
	"time"
)

// copier makes copies that exist until they are released.
type copier struct {
	err      error
	released chan struct{}
}

func (c *copier) checkpoint(context.Context, Copying) ([]Checkpoint, func() error, error) {
	if c.err != nil {
		return nil, nil, c.err
	}
	return []Checkpoint{{Store: "networks/demo", Dir: "/copy"}}, func() error { close(c.released); return nil }, nil
}

// await waits for a channel to be closed.
func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened", what)
	}
}

// TestCheckpoint checks how long copies exist: until the client closes them or dies, or the server
// stops. A client that is canceled has them until it closes them.
func TestCheckpoint(t *testing.T) {
	for name, end := range map[string]func(c *Client, copies *Copies, cancel, stop func()){
		"Close":  func(_ *Client, copies *Copies, _, _ func()) { _ = copies.Close() },
		"Cancel": func(_ *Client, copies *Copies, cancel, _ func()) { cancel(); _ = copies.Close() },
		"Stop":   func(_ *Client, _ *Copies, _, stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			service, _ := openService(t)
			copied := &copier{released: make(chan struct{})}
			stop := serveProcess(t, dir, service, Process{Checkpoint: copied.checkpoint})
			asked, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := dial(t, dir)
			ctx, copies, err := client.Checkpoint(asked, Copying{For: ForBackup, Stores: []string{"networks/demo"}})
			if err != nil || len(copies.Made) != 1 || copies.Made[0] != (Checkpoint{Store: "networks/demo", Dir: "/copy"}) {
				t.Fatalf("copies %+v, %v", copies, err)
			}
			select {
			case <-copied.released:
				t.Fatal("released while the client holds the copies")
			case <-ctx.Done():
				t.Fatal("the context ended while the copies exist")
			case <-time.After(50 * time.Millisecond):
			}
			end(client, copies, cancel, stop)
			await(t, "release", copied.released)
			await(t, "end of the context", ctx.Done())
			if name == "Stop" && !errors.Is(context.Cause(ctx), errServerStopped) {
				t.Errorf("the server stopped: cause %v", context.Cause(ctx))
			}
			_ = copies.Close()
			if name != "Stop" {
				stop()
			}
		})
	}
}

// TestCheckpointRefused checks that the client gets the server's error.
func TestCheckpointRefused(t *testing.T) {
	dir := t.TempDir()
	service, _ := openService(t)
	defer serveProcess(t, dir, service, Process{Checkpoint: (&copier{err: errors.New("copied already")}).checkpoint})()
	if _, _, err := dial(t, dir).Checkpoint(t.Context(), Copying{For: ForSnapshot}); err == nil || err.Error() != "copied already" {
		t.Errorf("got %v, expected the server's error", err)
	}
}
