package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
)

// StoredNetwork is a network in a data directory.
type StoredNetwork struct {
	Name   string
	Served bool // by the running server
	Bytes  int64
	Err    error // why Bytes is not known
}

// ListNetworks lists the networks that are stored in a data directory, including those
// that are empty or not served.
func ListNetworks(ctx context.Context, data string) ([]StoredNetwork, error) {
	dir := store.Dir(data)
	names, err := dir.List(ctx)
	if err != nil {
		return nil, err
	}
	running, _, err := serverStatus(ctx, data)
	if err != nil {
		return nil, err
	}
	served := running.Served()
	all := make([]StoredNetwork, len(names))
	for i, name := range names {
		all[i] = StoredNetwork{Name: name, Served: slices.Contains(served, name)}
		all[i].Bytes, all[i].Err = dir.Bytes(name)
	}
	return all, nil
}

// AddNetwork makes the running server of a data directory serve a network that is stored
// there, too.
func AddNetwork(ctx context.Context, data, name string) error {
	if err := store.Dir(data).CheckThere(); err != nil {
		return err
	}
	client, err := control.Dial(ctx, data)
	if err != nil {
		return fmt.Errorf("no server is running, and one that starts serves the network without this command: %w", err)
	}
	return errors.Join(client.AddNetwork(ctx, name), client.Close())
}

// RemoveNetwork removes a network with all that is stored of it. A running server that
// serves it first takes it out of service; no other process may have it open. listed means
// that the network is gone, and that the server's configuration still lists it.
func RemoveNetwork(ctx context.Context, data, name string) (listed bool, err error) {
	dir := store.Dir(data)
	if err := checkName(name); err != nil {
		return false, err
	}
	if err := dir.CheckThere(); err != nil {
		return false, err
	}
	if !dir.Has(name) {
		if found, err := dir.RemoveRest(name); err != nil || found { // of a command that was killed
			return false, err
		}
		return false, fmt.Errorf("network %s: not found in %s", name, data)
	}
	if err := dir.CheckRemovable(name); err != nil { // before the server takes it out of service in vain
		return false, err
	}
	p, err := pause(ctx, data, control.Borrowing{Network: name, Remove: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	opened, err := dir.OpenNetwork(name, kv.Options{ReadOnly: true})
	if errors.Is(err, kv.ErrInUse) || errors.Is(err, kv.ErrForeign) {
		return false, fmt.Errorf("network %s: %w", name, err)
	}
	if err == nil { // else it is damaged, and can be removed all the same
		err = opened.Close()
		if err != nil {
			return false, err
		}
	}
	err = dir.Remove(name)
	return p.Listed && !dir.Has(name), err
}
