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

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
)

// Unserved is a stored network that is not served, because a command must complete it first, or because the
// configuration must say how.
type Unserved struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// NewUnserved describes a network that could not be opened because of err.
func NewUnserved(name string, err error) Unserved {
	return Unserved{Name: name, Why: strings.TrimPrefix(err.Error(), "network "+name+": ")}
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
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		delete(u.byName, name)
	case IsUnserved(err):
		if u.byName == nil {
			u.byName = make(map[string]Unserved)
		}
		u.byName[name] = NewUnserved(name, err)
	}
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

// unserved returns the stored networks that are left out until a command has completed them, or the configuration
// says how to serve them.
func (s *Service) unserved(ctx context.Context) []Unserved {
	return slices.DeleteFunc(s.leftOut.all(), func(u Unserved) bool {
		exists, err := s.stores.Exists(ctx, u.Name)
		gone := err == nil && !exists
		if gone {
			s.leftOut.forget(u.Name)
		}
		return gone
	})
}

// openFirst opens the networks that are served from the start. Those that a command must
// complete first, or that need a configuration, are left out, unless the configuration lists them.
func (s *Service) openFirst(ctx context.Context, names []string) error {
	for _, name := range names {
		_, wanted := s.config.Networks[name]
		n, err := s.openNetwork(ctx, &s.config, name, len(names))
		if IsUnserved(err) && !wanted {
			slog.Warn("network not served", "network", name, "error", err)
			continue
		}
		if n != nil {
			s.networks = append(s.networks, n) // which Close closes
		}
		if err != nil {
			return err
		}
	}
	if len(s.networks) > 0 {
		return nil
	}
	return s.nothingToServe(ctx)
}

// nothingToServe says why no network is served.
func (s *Service) nothingToServe(ctx context.Context) error {
	var why []error
	for _, u := range s.unserved(ctx) {
		why = append(why, errors.New(u.String()))
	}
	if len(why) == 0 {
		return noNetworks(s.stores)
	}
	return errors.Join(why...)
}

func noNetworks(data store.Stores) error {
	return fmt.Errorf("no networks in %s: import one with `ashlar import`, or try `ashlar demo`", data)
}

// listedUnserved returns a network that the configuration lists and that is left out, or
// false.
func (s *Service) listedUnserved(ctx context.Context, c config.Config) (Unserved, bool) {
	for _, u := range s.unserved(ctx) {
		if _, listed := c.Networks[u.Name]; listed {
			return u, true
		}
	}
	return Unserved{}, false
}
