package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/gateway"
	"ashlar/history/rows"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/openrpc"
	"ashlar/kv"
	"ashlar/limit"

	"golang.org/x/sync/errgroup"
)

// Network is an open network with its store. It must be closed.
type Network struct {
	family.Network
	Name string

	family   family.Family
	store    kv.Store // nil if the family has none
	methods  *jsonrpc.Methods
	versions map[string]*jsonrpc.Methods // other forms of the methods, if the family has any
	openRPC  *openrpc.Document
	pace     atomic.Pointer[family.CatchUp] // nil if the network is at the head

	users limit.Users   // those who ask it; it is closed after the last
	leave chan struct{} // closed when the network is to stop running
	ended chan struct{} // closed when it runs no more
}

// Place returns the place of a network of a family.
func Place(ctx context.Context, data store.Stores, f family.Family, name string) (family.Place, error) {
	exists, err := data.Exists(ctx, name)
	if err != nil {
		return family.Place{}, err
	}
	return family.Place{
		Name: name, New: !exists,
		Open: func(o kv.Options) (kv.Store, error) {
			o.Tables = f.Tables()
			accept := o.Accept
			o.Accept = func(r kv.Reader) error {
				if err := checkFamily(ctx, r, f); err != nil || accept == nil {
					return err
				}
				return accept(r)
			}
			return data.OpenNetwork(name, o)
		},
	}, nil
}

// checkFamily rejects the store of a network of another family. It leaves unknown formats
// to the family, which also rejects them.
func checkFamily(ctx context.Context, r kv.Reader, wanted family.Family) error {
	format, err := rows.Format(ctx, r)
	if err != nil {
		return nil // an empty store, or an error that the family gets too
	}
	if found, ok := Families().OfFormat(format); ok && found.Name() != wanted.Name() {
		return fmt.Errorf("it is of family %s, and blocks of family %s cannot be imported into it; see --family", found.Name(), wanted.Name())
	}
	return nil
}

// openServed opens a network to serve it. The network need not exist if the configuration
// says with which block it begins.
func openServed(ctx context.Context, data store.Stores, name string, c config.Network, o kv.Options) (*Network, error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, err
	}
	f, err := Families().Named(c.Family)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	entries, err := c.Entries(f)
	if err == nil && f.Stores() && !o.ReadOnly {
		var place family.Place
		if place, err = Place(ctx, data, f, name); err == nil {
			err = f.Begin(ctx, place, entries)
		}
		if err == nil && place.New {
			err = checkBegun(ctx, data, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	if !f.Stores() {
		n, err := f.Open(ctx, nil, entries, o.ReadOnly)
		if err != nil {
			return nil, fmt.Errorf("network %s: %w", name, err)
		}
		return &Network{Network: n, Name: name, family: f}, nil
	}
	return OpenNetwork(ctx, data, name, c, o)
}

// checkBegun returns what is missing if a new network has not begun, because its configuration does not say how.
func checkBegun(ctx context.Context, data store.Stores, name string) error {
	if exists, err := data.Exists(ctx, name); err != nil || exists {
		return err
	}
	return fmt.Errorf("%w (a new network begins with the genesis in its configuration, the entry networks.%s.genesis; one of Starknet with networks.%[2]s.source)", store.NotFound(ctx, data, name), name)
}

// OpenNetwork opens a network that has a store, with its unsettled blocks. It returns
// family.ErrNoBlocks if the network has no blocks.
func OpenNetwork(ctx context.Context, data store.Stores, name string, c config.Network, o kv.Options) (*Network, error) {
	opened, f, err := OpenStore(ctx, data, name, o)
	if err != nil {
		return nil, err
	}
	n := &Network{Name: name, family: f, store: opened}
	if c.Family != "" && c.Family != f.Name() {
		err = fmt.Errorf("it is of family %s, the configuration says %s", f.Name(), c.Family)
	} else if err = prepare(ctx, opened, f, o); err == nil {
		var entries family.Entries
		if entries, err = c.Entries(f); err == nil {
			n.Network, err = f.Open(ctx, opened, entries, o.ReadOnly)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("network %s: %w", name, err), opened.Close())
	}
	return n, nil
}

// prepare creates all tables of a network that is written to. Later, while it follows, that
// could take long.
func prepare(ctx context.Context, opened kv.Store, f family.Family, o kv.Options) error {
	if preparer, ok := opened.(kv.Preparer); ok && !o.ReadOnly {
		return preparer.Prepare(ctx, f.Tables())
	}
	return nil
}

// FamilyOf returns the family of a network by its store. It is the default family, whose
// errors describe the store, if the format is unknown or cannot be read; the error is
// kv.ErrNotFound for an empty store.
func FamilyOf(ctx context.Context, r kv.Reader) (family.Family, error) {
	format, err := rows.Format(ctx, r)
	if err == nil {
		if f, ok := Families().OfFormat(format); ok {
			return f, nil
		}
	}
	return Families().Default(), err
}

// OpenStore opens the store of an existing network, and returns its family. The error is
// family.ErrNoBlocks if there is nothing in the network's place.
func OpenStore(ctx context.Context, data store.Stores, name string, o kv.Options) (kv.Store, family.Family, error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, nil, err
	}
	if exists, err := data.Exists(ctx, name); err != nil {
		return nil, nil, err
	} else if !exists {
		return nil, nil, fmt.Errorf("network %s: %w", name, store.NotFound(ctx, data, name))
	}
	var found family.Family
	o.Existing, o.Tables = true, Families().Tables()
	o.Accept = func(r kv.Reader) error {
		found, _ = FamilyOf(ctx, r) // the family gets the error too
		return found.Accept(ctx, r)
	}
	opened, err := data.OpenNetwork(name, o)
	if errors.Is(err, kv.ErrNotFound) && found == nil {
		err = family.ErrNoBlocks
	}
	if err != nil {
		return nil, nil, fmt.Errorf("network %s: %w", name, err)
	}
	return opened, found, nil
}

// run runs the network until ctx is done or leave is closed.
func (n *Network) run(ctx context.Context) error {
	defer close(n.ended)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.Run(ctx) })
	group.Go(func() error { return n.watchPace(ctx) })
	group.Go(func() error { return n.watchLease(ctx) })
	group.Go(func() error {
		defer cancel()
		select {
		case <-n.leave:
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

// serve prepares the network to answer, and collects its methods.
func (n *Network) serve(ctx context.Context, s family.Service) error {
	methods, err := n.Serve(ctx, s)
	if err != nil {
		return err
	}
	info := openrpc.Info{
		Title: n.Name, Version: s.Version.Release,
		Description: "The methods of the network " + n.Name + ", served at /" + n.Name + "/v3/KEY over HTTP and at /" + n.Name + "/ws/v3/KEY by WebSocket.",
	}
	if n.openRPC, n.methods, err = openrpc.Describe(info, methods); err != nil {
		return err
	}
	if versioned, ok := n.Network.(family.Versioned); ok {
		n.versions, err = versioned.Versions()
	}
	return err
}

// Status returns the status of the network.
func (n *Network) Status(ctx context.Context) (family.Status, error) {
	status, err := n.Network.Status(ctx)
	status.Name = n.Name
	if n.store != nil {
		stored := n.store.Stats()
		status.DiskBytes = stored.DiskBytes
		if stored.Refused != nil {
			status.Refused = stored.Refused.Error()
		}
	}
	status.CatchUp = n.pace.Load()
	return status, err
}

// Close closes the network and its store.
func (n *Network) Close() error {
	err := n.Network.Close()
	if n.store != nil {
		err = errors.Join(err, n.store.Close())
	}
	return err
}
