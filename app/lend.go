package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ashlar/account/control"
	"ashlar/kv"
)

// lendWait is how long a command waits until another one has given a network back: the server may be opening it.
const lendWait = 10 * time.Second

// loans are the networks that commands have. The zero value has none.
type loans struct {
	mu     sync.Mutex
	byName map[string]chan struct{} // guarded by mu; closed when the command has given the network back
}

// begin marks a network as lent until end is called. While another command has it, it waits, at most for a time.
func (l *loans) begin(ctx context.Context, name string, most time.Duration) (end func(), err error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		l.mu.Lock()
		back, there := l.byName[name]
		if !there {
			back = make(chan struct{})
			if l.byName == nil {
				l.byName = make(map[string]chan struct{})
			}
			l.byName[name] = back
		}
		l.mu.Unlock()
		if !there {
			return func() { l.end(name, back) }, nil
		}
		select {
		case <-back:
		case <-timer.C:
			return nil, fmt.Errorf("network %s: another command has it (want one at a time)", name)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *loans) end(name string, back chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, name)
	close(back)
}

// LendNetwork takes a network out of service and closes it, so that a command can work on
// its store: new requests for it are answered as for an unknown network, those under way
// are awaited, and its WebSockets are closed. If ctx is done before that, the network is
// served on. release serves it again if it is still stored.
//
// One command at a time has a network; another one waits for it for lendWait.
//
// Every request has a time limit, so the wait is bounded, unless a backup or a
// snapshot copies the network: then it lasts until that is done.
func (s *Service) LendNetwork(ctx context.Context, what control.Borrowing) (b control.Borrowed, release func(context.Context) error, err error) {
	name := what.Network
	if slices.Contains(s.Pinned, name) {
		return b, nil, fmt.Errorf("network %s: it is the demo's, which ends with the demo", name)
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
		return b, nil, ctx.Err()
	}
	end, err := s.lent.begin(ctx, name, lendWait)
	if err != nil {
		return b, nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	if err = s.lendable(what); err != nil {
		return b, nil, err
	}
	n, err := s.hide(name)
	if err != nil {
		return b, nil, err
	}
	slog.Info("taking a network out of service", "network", name)
	if err := n.users.Close(ctx); err != nil {
		return b, nil, errors.Join(err, s.show(n))
	}
	close(n.leave)
	<-n.ended
	s.metrics.forget(name)
	if err := n.Close(); err != nil {
		return b, nil, errors.Join(fmt.Errorf("network %s: %w", name, err), s.takeBack(context.WithoutCancel(ctx), name))
	}
	slog.Info("network out of service", "network", name)
	_, b.Listed = s.current.Load().Networks[name]
	return b, func(ctx context.Context) error { defer end(); return s.takeBack(ctx, name) }, nil
}

// lendable returns why a network stays in service: neither the command nor this server could open a store that refuses writes.
// One that is to be removed makes space, unless it has failed: then it stays locked until this process ends. A network
// that another process copies cannot be removed.
func (s *Service) lendable(what control.Borrowing) error {
	n := s.Network(what.Network)
	if n == nil || n.store == nil {
		return nil
	}
	if refused := n.store.Stats().Refused; refused != nil && (!what.Remove || errors.Is(refused, kv.ErrFailed)) {
		return fmt.Errorf("network %s stays in service: its store refuses writes: %w", n.Name, refused)
	}
	if copied, ok := n.store.(kv.Checkpointer); ok && what.Remove {
		if err := copied.CopiedElsewhere(); err != nil {
			return fmt.Errorf("network %s stays in service: %w", n.Name, err)
		}
	}
	return nil
}

// hide makes a served network invisible to clients.
func (s *Service) hide(name string) (*Network, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	n := s.Network(name)
	if n == nil {
		return nil, fmt.Errorf("network %s: %w", name, control.ErrNotServed)
	}
	return n, s.serveOnly(*s.current.Load(), slices.DeleteFunc(slices.Clone(s.Networks()), func(other *Network) bool { return other == n }))
}

// show makes a hidden network visible to clients again.
func (s *Service) show(n *Network) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	return s.serveOnly(*s.current.Load(), append(slices.Clone(s.Networks()), n))
}

// takeBack serves a network that was lent, unless it is gone, served already, or the
// service is stopping. One that cannot be served is left out, if the configuration still has it. If another
// command has its store open already, such as the import after `ashlar network remove`, that is no error.
func (s *Service) takeBack(ctx context.Context, name string) error {
	if ctx.Err() != nil || s.Network(name) != nil {
		return nil
	}
	if exists, err := s.stores.Exists(ctx, name); err != nil || !exists {
		return err
	}
	err := s.AddNetwork(ctx, name)
	switch {
	case err == nil || errors.Is(err, errStopping) || s.Network(name) != nil:
		return nil
	case !IsUnserved(err) && !errors.Is(err, errUnlisted):
		u := newFailed(name, err)
		s.leftOut.leaveOut(u)
		if errors.Is(err, kv.ErrInUse) {
			slog.Warn("network not served", "network", name, "error", u.Why)
			return nil
		}
	}
	return err
}
