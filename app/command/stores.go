package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/gateway"
)

// openStores opens the stores of a data directory, or those that a configuration file names;
// data overrides its entry. The caller must close them. If reading is set, networks in a
// keyspace are only read.
func openStores(ctx context.Context, data, file string, reading bool) (store.Stores, config.Config, error) {
	c := config.Default()
	if file != "" {
		var err error
		if c, err = LoadConfig(file); err != nil {
			return nil, c, err
		}
	}
	c.Data = cmp.Or(data, c.Data)
	stores, err := app.OpenStores(ctx, &c, reading)
	if err != nil && file != "" && data == "" {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if keyspace, ok := stores.(*store.Keyspace); ok && err == nil {
		keyspace.AwaitLeases() // an earlier run of the command may have been killed
	}
	return stores, c, err
}

// openStoresOf is openStores for a command on one network, which must exist.
func openStoresOf(ctx context.Context, network, data, file string, reading bool) (_ store.Stores, c config.Config, err error) {
	if err := checkName(network); err != nil {
		return nil, c, err
	}
	stores, c, err := openStores(ctx, data, file, reading)
	if err != nil {
		return nil, c, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stores.Close())
		}
	}()
	if dir, ok := stores.(store.Dir); ok {
		if err := dir.CheckThere(); err != nil {
			return nil, c, err
		}
	}
	if exists, err := stores.Exists(ctx, network); err != nil {
		return nil, c, err
	} else if !exists {
		return nil, c, store.NotFound(ctx, stores, network)
	}
	return stores, c, nil
}

// checkName returns an error if no network can have a name.
func checkName(network string) error { return family.Usage(gateway.CheckNetworkName(network)) }

// ofNetwork returns an error with the name of its network before it. A running server's has it already.
func ofNetwork(name string, err error) error {
	if strings.HasPrefix(err.Error(), "network "+name+":") || strings.HasPrefix(err.Error(), "network "+name+" ") {
		return err
	}
	return fmt.Errorf("network %s: %w", name, err)
}

// OpenAccounts opens the accounts and API keys of a data directory, or of the stores that a
// configuration file names. The caller must close the closer.
func OpenAccounts(ctx context.Context, data, file string) (control.Service, io.Closer, error) {
	stores, c, err := openStores(ctx, data, file, false)
	if err != nil {
		return control.Service{}, nil, err
	}
	service, accounts, err := app.OpenAccounts(ctx, stores, &c)
	if err != nil {
		return service, nil, errors.Join(err, stores.Close())
	}
	return service, closers{accounts, stores}, nil
}

// closers are closed in order.
type closers []io.Closer

func (all closers) Close() error {
	var failed []error
	for _, c := range all {
		failed = append(failed, c.Close())
	}
	return errors.Join(failed...)
}
