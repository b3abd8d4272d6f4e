package command

import (
	"context"
	"errors"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// ReadStatus returns the status of a data directory, or of the stores that a configuration
// file names. If a server has a directory open, the status comes from that server. Networks
// in a keyspace are read from there, beside the processes that serve them. It lists a network
// whose status cannot be read as unreadable, and returns no error for it.
func ReadStatus(ctx context.Context, dir, file string) (all app.Status, err error) {
	data, c, err := openStores(ctx, dir, file, true)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	_, inKeyspace := data.(*store.Keyspace)
	if !inKeyspace {
		if all, running, err := serverStatus(ctx, c.Data); running {
			return all, err
		}
		all.NoServer = true
	}
	names, err := data.List(ctx)
	if err != nil {
		return all, err
	}
	all.Networks = []family.Status{} // in JSON an empty list, not null
	for _, name := range names {
		one, err := storedStatus(ctx, data, name, kv.Options{ReadOnly: true})
		switch {
		case err == nil:
			all.Networks = append(all.Networks, one)
		case ctx.Err() != nil:
			return all, err
		case app.IsUnserved(err):
			all.Unserved = append(all.Unserved, app.NewUnserved(name, err))
		default:
			all.Unreadable = append(all.Unreadable, app.NewUnreadable(name, err))
		}
	}
	return all, nil
}

// storedStatus opens a network and returns its status.
func storedStatus(ctx context.Context, data store.Stores, name string, o kv.Options) (family.Status, error) {
	n, err := app.OpenNetwork(ctx, data, name, config.Network{}, o)
	if err != nil {
		return family.Status{}, err
	}
	one, err := n.Status(ctx)
	return one, errors.Join(err, n.Close())
}

// serverStatus returns the status of the server that has a data directory open, and whether
// one is running.
func serverStatus(ctx context.Context, data string) (all app.Status, running bool, err error) {
	client, err := control.Dial(ctx, data)
	if err != nil {
		return all, false, nil // no server
	}
	err = errors.Join(client.Status(ctx, &all), client.Close())
	return all, true, err
}
