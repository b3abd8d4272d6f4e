package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// Unserved is a stored network that is not served, because a command must complete it first, because the
// configuration must say how, or because it could not be opened.
type Unserved struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// Failed says that something is wrong with the network, not only that a command has it or must
	// complete it: the server is not ready without it.
	Failed bool `json:"failed,omitempty"`

	unopened bool // it could not be opened, so it is not known whether it is complete
}

// NewUnserved describes a network that could not be opened because of err.
func NewUnserved(name string, err error) Unserved {
	return Unserved{Name: name, Why: strings.TrimPrefix(err.Error(), "network "+name+": ")}
}

// newFailed describes a network that is left out because of an error that is not for a command to
// complete. A store that another process has open is that process's to give back, as during an import.
func newFailed(name string, err error) Unserved {
	u := NewUnserved(name, err)
	u.unopened = true
	if errors.Is(err, kv.ErrInUse) {
		u.Why += "; once it is free, a network that the configuration lists is served by itself, another one after `ashlar network add`"
		return u
	}
	u.Why += "; once this is fixed, run `ashlar network add`"
	u.Failed = true
	return u
}

func (u Unserved) String() string { return fmt.Sprintf("network %s is not served: %s", u.Name, u.Why) }

// unservedNetworks are the networks that a service has left out. The zero value has none.
type unservedNetworks struct {
	mu     sync.Mutex
	byName map[string]Unserved // guarded by mu
}

// IsUnserved reports whether an error of opening a network means that the others are served without it.
func IsUnserved(err error) bool {
	return family.Incomplete(err) || errors.Is(err, family.ErrUnconfigured)
}

// opened records with which error a network was opened. Another error than that it is incomplete,
// such as one while the command has it open, does not make it complete.
func (u *unservedNetworks) opened(name string, err error) {
	switch {
	case err == nil:
		u.forget(name)
	case IsUnserved(err):
		u.leaveOut(NewUnserved(name, err))
	default:
		if _, there := u.of(name); there {
			u.leaveOut(newFailed(name, err))
		}
	}
}

// of returns a network that is left out, or false.
func (u *unservedNetworks) of(name string) (Unserved, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	left, there := u.byName[name]
	return left, there
}

// leaveOut records a network that is left out. The reason of one that is incomplete stays.
func (u *unservedNetworks) leaveOut(n Unserved) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old, there := u.byName[n.Name]; there && !old.unopened && n.unopened {
		return
	}
	if u.byName == nil {
		u.byName = make(map[string]Unserved)
	}
	u.byName[n.Name] = n
}

// forget removes a network, which is stored no more.
func (u *unservedNetworks) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, name)
}

// all returns the networks, sorted by name.
func (u *unservedNetworks) all() (all []Unserved) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(u.byName)) {
		all = append(all, u.byName[name])
	}
	return all
}

// Unserved returns the stored networks that are left out until a command has completed them, the configuration
// says how to serve them, or their stores open.
func (s *Service) Unserved(ctx context.Context) []Unserved {
	return slices.DeleteFunc(s.leftOut.all(), func(u Unserved) bool {
		exists, err := s.stores.Exists(ctx, u.Name)
		gone := err == nil && !exists
		if gone {
			s.leftOut.forget(u.Name)
		}
		return gone
	})
}

// openFirst opens the networks that are served from the start. Those that cannot be served although the
// configuration is right are left out.
func (s *Service) openFirst(ctx context.Context, names []string) error {
	var failed []error
	for _, name := range names {
		n, err := s.openNetwork(ctx, &s.config, name, len(names))
		if n != nil {
			s.networks = append(s.networks, n) // which Close closes
		}
		if err == nil {
			continue
		}
		why := s.whyLeftOut(ctx, name, err)
		switch {
		case n != nil || why == nil:
			return err
		case IsUnserved(why):
			slog.Warn("network not served", "network", name, "error", why)
		default:
			u := newFailed(name, why)
			s.leftOut.leaveOut(u)
			failed = append(failed, why)
			slog.Error("network not served", "network", name, "error", u.Why)
		}
	}
	if len(s.networks) > 0 {
		return nil
	}
	return s.nothingToServe(ctx, failed)
}

// whyLeftOut returns why the others are served without a network that was opened with an error: it must be
// completed or configured first, or its store does not open. It returns nil if the service cannot start: the
// configuration is wrong, or other processes of a cluster decide.
func (s *Service) whyLeftOut(ctx context.Context, name string, err error) error {
	_, listed := s.config.Networks[name]
	_, local := s.stores.(store.Dir)
	switch {
	case IsUnserved(err) && (!listed || local && family.Incomplete(err)):
		return err
	case !local:
		return nil
	case errors.Is(err, kv.ErrInUse):
		return err
	}
	if exists, err := s.stores.Exists(ctx, name); err != nil || !exists {
		return nil
	}
	opened, _, err := OpenStore(ctx, s.stores, name, kv.Options{})
	if err == nil {
		err = opened.Close()
	}
	return err
}

// nothingToServe says why no network is served. failed are errors of stores that do not open.
func (s *Service) nothingToServe(ctx context.Context, failed []error) error {
	why := failed
	for _, u := range s.Unserved(ctx) {
		if !u.unopened {
			why = append(why, errors.New(u.String()))
		}
	}
	if len(why) == 0 {
		return noNetworks(s.stores)
	}
	return errors.Join(why...)
}

func noNetworks(data store.Stores) error {
	return fmt.Errorf("no networks in %s: import one with `ashlar import`, or try `ashlar demo`", data)
}

// missing returns a network that is left out and should be served, because the configuration lists it or
// because it failed; or false.
func (s *Service) missing(ctx context.Context, c config.Config) (Unserved, bool) {
	for _, u := range s.Unserved(ctx) {
		if u.missed(&c) {
			return u, true
		}
	}
	return Unserved{}, false
}

// missed reports whether the network should be served.
func (u Unserved) missed(c *config.Config) bool {
	_, listed := c.Networks[u.Name]
	return listed || u.Failed
}

// freedEvery is the time between two looks for stores that other processes have closed.
const freedEvery = 10 * time.Second

// awaitFreed serves networks of the configuration once other processes have closed their stores, until ctx is
// done.
func (s *Service) awaitFreed(ctx context.Context) error {
	tick := time.NewTicker(freedEvery)
	defer tick.Stop()
	var failed map[string]string // by network, the reason that is in the log
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := s.addFreed(ctx)
		for name, why := range now {
			if why != failed[name] {
				slog.Error("network not served", "network", name, "error", why)
			}
		}
		failed = now
	}
}

// addFreed serves the networks that the configuration lists and whose stores were in use, if they open now. It
// returns why others of these cannot be served. Networks that the configuration does not list are not served
// before a command asks for it: their import may take several commands.
func (s *Service) addFreed(ctx context.Context) (failed map[string]string) {
	failed = make(map[string]string)
	for _, u := range s.Unserved(ctx) {
		_, listed := s.current.Load().Networks[u.Name]
		if !listed || !u.unopened || u.Failed || s.Network(u.Name) != nil {
			continue
		}
		err := s.AddNetwork(ctx, u.Name)
		if err != nil && !errors.Is(err, kv.ErrInUse) && !errors.Is(err, errStopping) && s.Network(u.Name) == nil {
			failed[u.Name] = err.Error()
		}
	}
	return failed
}
