// Package app puts the service together: its configuration, its data directory,
// and what each command does. It is the only package that knows all others.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/account/session"
	"ashlar/account/usage"
	stores "ashlar/app/store"
	"ashlar/evm/archive"
	"ashlar/gateway"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
)

// A data directory holds one store for the accounts and one for each network:
//
//	DIR/accounts/          people's accounts and API keys
//	DIR/networks/NAME/     the history of the network NAME
//	DIR/control.sock       where a running server takes commands
type dataDir string

func (d dataDir) accounts() string            { return filepath.Join(string(d), "accounts") }
func (d dataDir) networks() string            { return filepath.Join(string(d), "networks") }
func (d dataDir) network(name string) string  { return filepath.Join(d.networks(), name) }
func (d dataDir) isEmpty(network string) bool { return !exists(d.network(network)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// check refuses a directory that holds other things than a service's, before
// anything is put there. One that is empty, or does not exist yet, may become ours.
func (d dataDir) check() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	var foreign string
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == filepath.Base(d.accounts()), name == filepath.Base(d.networks()):
			return nil
		case name[0] != '.' && name != "lost+found": // which a disk of its own has
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%s is no data directory: %q is in it, and neither accounts nor networks; expected one that ashlar made, or an empty one", d, foreign)
	}
	return nil
}

// checkThere is check for what makes no data directory: where there is none, its name is
// likely misspelt.
func (d dataDir) checkThere() error {
	if _, err := os.Stat(string(d)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s: no such directory", d)
	}
	return d.check()
}

// networkNames lists the networks that the directory holds.
func (d dataDir) networkNames() ([]string, error) {
	if err := d.checkThere(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.networks())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && gateway.CheckNetworkName(entry.Name()) == nil {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// networkBytes is what a network takes on disk.
func (d dataDir) networkBytes(name string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(d.network(name), func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// reachAccounts opens the accounts and keys, directly or, while a server has them,
// through it. The directory must be there; it may be empty.
func (d dataDir) reachAccounts(ctx context.Context) (control.Service, io.Closer, error) {
	if err := d.checkThere(); err != nil {
		return control.Service{}, nil, err
	}
	return control.Reach(ctx, string(d), func(ctx context.Context) (control.Service, io.Closer, error) {
		people, err := d.openAccounts(ctx, AccountsConfig{})
		if err != nil {
			return control.Service{}, nil, err
		}
		return people.service(), people.store, nil
	}, isLocked)
}

// people is an open store of accounts and what is in it.
type people struct {
	store    kv.Store
	accounts *account.Accounts
	keys     *account.Keyring
	sessions *session.Store
	usage    *usage.Usage
}

func (p *people) service() control.Service {
	return control.Service{Keys: p.keys, Accounts: p.accounts, Usage: p.usage}
}

func (d dataDir) openAccounts(ctx context.Context, config AccountsConfig) (people, error) {
	if err := d.check(); err != nil {
		return people{}, err
	}
	store, err := stores.Open(d.accounts(), kv.Options{
		CacheBytes: 1 << 20, BufferBytes: 1 << 20, Logger: slog.Default(),
		Accept: func(r kv.Reader) error { return account.Accept(ctx, r) },
	})
	if err != nil {
		return people{}, fmt.Errorf("accounts: %w", err)
	}
	p := people{store: store, sessions: session.NewStore(store, nil)}
	if p.accounts, err = account.OpenAccounts(ctx, store, config.config()); err == nil {
		p.keys, err = account.OpenKeyring(ctx, p.accounts)
	}
	if err == nil {
		p.usage, err = usage.Open(ctx, store, usage.Config{Keep: config.UsageDays})
	}
	if err != nil {
		return people{}, errors.Join(err, store.Close())
	}
	return p, nil
}

func isLocked(err error) bool { return errors.Is(err, kv.ErrInUse) }

// errNoBlocks says that a network is there but not even its first block: the import
// that made it was stopped at its very beginning.
var errNoBlocks = errors.New("it holds no blocks yet; import them again, if it is an EVM network with its genesis")

// createNetwork opens the history of a network, or makes it. What is there of
// another chain is refused and stays as it is.
func (d dataDir) createNetwork(ctx context.Context, name string, options kv.Options, first *core.Genesis) (*archive.Archive, kv.Store, error) {
	if err := os.MkdirAll(d.networks(), 0o755); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	options.Logger = slog.Default()
	options.Accept = func(r kv.Reader) error {
		if err := checkFamily(ctx, r, familyEVM); err != nil {
			return err
		}
		return archive.Accept(ctx, r, first)
	}
	store, err := stores.Open(d.network(name), options)
	if err != nil {
		return nil, nil, fmt.Errorf("network %s: %w", name, err)
	}
	a, err := archive.Create(ctx, store, first)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
	}
	return a, store, nil
}

// openArchive opens the settled history of an EVM network that is there, or returns
// errNoBlocks where there is nothing of it yet.
func (d dataDir) openArchive(ctx context.Context, name string, options kv.Options) (*archive.Archive, kv.Store, error) {
	store, _, err := d.openStore(ctx, name, options)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFamily(ctx, store, familyEVM); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
	}
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
	}
	return a, store, nil
}

// OpenAccounts opens the accounts and API keys of a data directory, through the server
// that has it open, if any. The closer must be closed after use.
func OpenAccounts(ctx context.Context, dir string) (control.Service, io.Closer, error) {
	return dataDir(dir).reachAccounts(ctx)
}
