package app

import (
	"context"
	"errors"
	"sync"
	"testing"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/internal/await"
	"ashlar/kv"
)

// slowStores open a network once they may.
type slowStores struct {
	store.Stores
	begun func()
	may   chan struct{}
}

func (s slowStores) OpenNetwork(name string, o kv.Options) (kv.Store, error) {
	s.begun()
	<-s.may
	return s.Stores.OpenNetwork(name, o)
}

// TestStopWhileNetworkIsAdded: a network that is being opened when the service stops never runs. A command that waits to take
// it out of service does not wait for its end.
func TestStopWhileNetworkIsAdded(t *testing.T) {
	c := config.Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	makeNetwork(t, c.Data)
	s, err := Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	makeStored(t, c.Data, "evm", "second")
	begun := make(chan struct{})
	slow := slowStores{s.stores, sync.OnceFunc(func() { close(begun) }), make(chan struct{})}
	s.stores = slow
	ctx, stop := context.WithCancel(t.Context())
	ran, added := make(chan error, 1), make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	go func() { added <- s.AddNetwork(t.Context(), "second") }()
	<-begun
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	close(slow.may)
	if err := <-added; !errors.Is(err, errStopping) {
		t.Errorf("the network is added to a service that stops: %v", err)
	}
	lent := make(chan error, 1)
	go func() { _, _, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"}); lent <- err }()
	if err := await.Receive(t, "the end of a network that never ran", lent); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
