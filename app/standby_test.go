package app

import (
	"context"
	"sync"
	"testing"
	"time"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/internal/await"
	"ashlar/kv"
)

// leases are stores of networks, some of which other processes have.
type leases struct {
	store.Stores
	mu     sync.Mutex
	others map[string]bool // guarded by mu
	here   map[string]bool // guarded by mu
}

func (l *leases) OpenNetwork(name string, o kv.Options) (kv.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others[name] {
		return nil, kv.ErrInUse
	}
	opened, err := l.Stores.OpenNetwork(name, o)
	if err == nil {
		l.here[name] = true
	}
	return leasedHere{opened, func() { l.set(l.here, name, false) }}, err
}

func (l *leases) set(which map[string]bool, name string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	which[name] = is
}

func (l *leases) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.here[name]
}

type leasedHere struct {
	kv.Store
	closed func()
}

func (s leasedHere) Close() error {
	defer s.closed()
	return s.Store.Close()
}

// TestStandbyHoldsNoLease: a standby that has the lease of one network and waits for that of another one, which a command has,
// gives up the first one after a while: a writer or a command may want it. In the end it gets both.
func TestStandbyHoldsNoLease(t *testing.T) {
	c := config.Default()
	c.Data, c.Role, c.Store.Cassandra.Hosts = t.TempDir(), config.Standby, []string{"127.0.0.1"}
	makeNetwork(t, c.Data)
	makeStored(t, c.Data, "evm", "second")
	l := &leases{Stores: store.Dir(c.Data), others: map[string]bool{"second": true}, here: make(map[string]bool)}
	s := &Service{config: c, stores: l, metrics: newMetrics(), holdTime: time.Second, begun: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opened := make(chan error, 1)
	go func() { opened <- s.openHolding(ctx, []string{"demo", "second"}) }()
	await.Until(t, "the lease of demo", func() bool { return l.has("demo") })
	await.Until(t, "that lease to be given up", func() bool { return !l.has("demo") })
	l.set(l.others, "demo", true) // a writer gets it
	l.set(l.others, "second", false)
	await.Until(t, "the other lease", func() bool { return l.has("second") })
	await.Until(t, "that one to be given up, too", func() bool { return !l.has("second") })
	l.set(l.others, "demo", false)
	if err := await.Receive(t, "both networks", opened); err != nil || len(s.Networks()) != 2 {
		t.Errorf("%d networks, %v, want two", len(s.Networks()), err)
	}
	for _, n := range s.Networks() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
