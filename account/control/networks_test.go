package control

import (
	"context"
	"testing"
	"time"
)

// TestAddNetworkTakesLong: to open a store may take longer than the server gives a client to send a request, and
// than the client waits for other operations. Neither ends the operation or keeps its answer from the client.
func TestAddNetworkTakesLong(t *testing.T) {
	const limit = time.Second
	dir := shortDir(t)
	service, _ := openService(t)
	add := func(ctx context.Context, _ string) error {
		select {
		case <-time.After(3 * limit):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s, err := Listen(dir, service, Process{AddNetwork: add})
	if err != nil {
		t.Fatal(err)
	}
	s.io = limit
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	client := dial(t, dir)
	client.answer = limit
	if err := client.AddNetwork(t.Context(), "demo"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
