package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// copies returns the directory in which copies of stores are collected. It is laid out like
// the data directory.
func (d Dir) copies() Dir { return Dir(filepath.Join(string(d), ".copy")) }

// ListStores implements [Stores].
func (d Dir) ListStores(context.Context) ([]string, error) {
	networks, err := d.Names()
	if err != nil {
		return nil, err
	}
	return storeNames(networks, d.HasStore(AccountsName)), nil
}

// storeNames returns the names of stores in backups.
func storeNames(networks []string, accounts bool) (names []string) {
	for _, network := range networks {
		names = append(names, NetworkStore(network))
	}
	if accounts {
		names = append(names, AccountsName)
	}
	return names
}

// OpenToCopy implements [Stores].
func (d Dir) OpenToCopy(_ context.Context, name string) (kv.Store, error) {
	if !d.HasStore(name) {
		return nil, fmt.Errorf("not found in %s", d)
	}
	if network, ok := strings.CutPrefix(name, networkPrefix); ok {
		if err := d.checkOwn(network); err != nil {
			return nil, err
		}
	}
	return Open(d.place(name), kv.Options{ReadOnly: true, CacheBytes: copyCache, Logger: slog.Default()})
}

// OpenCopy implements [Stores].
func (d Dir) OpenCopy(_ context.Context, name string, tables []*kv.Table) (kv.Store, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	place := d.copies().place(name)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return Open(place, kv.Options{CacheBytes: copyCache, BufferBytes: copyBuffer, BulkLoad: true, Tables: tables, Private: name == AccountsName, Logger: slog.Default()})
}

// Publish implements [Stores].
func (d Dir) Publish(_ context.Context, name string) error {
	if d.HasStore(name) {
		return errExists(name, d)
	}
	place := d.place(name)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Rename(d.copies().place(name), place); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(place)); err != nil {
		return err
	}
	for _, empty := range []string{d.copies().networks(), string(d.copies())} {
		_ = os.Remove(empty) // fails while it has other copies
	}
	return nil
}

// Discard implements [Stores].
func (d Dir) Discard(_ context.Context, name string) error {
	return os.RemoveAll(d.copies().place(name))
}

func errExists(name string, s Stores) error {
	return fmt.Errorf("%s exists in %s (want a place without it)", name, s)
}

// copyPrefix begins the names of copies that are collected in a keyspace.
const copyPrefix = "copies/"

// ListStores implements [Stores].
func (k *Keyspace) ListStores(ctx context.Context) ([]string, error) {
	networks, err := k.List(ctx)
	if err != nil {
		return nil, err
	}
	all, err := k.cluster.Names(ctx)
	return storeNames(networks, slices.Contains(all, AccountsName)), err
}

// OpenToCopy implements [Stores]. It takes the lease of a network, so that no writer changes
// it. Accounts are written by all processes of a cluster.
func (k *Keyspace) OpenToCopy(ctx context.Context, name string) (kv.Store, error) {
	all, err := k.cluster.Names(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(all, name) {
		return nil, fmt.Errorf("not found in %s", k)
	}
	opened, err := k.openLeased(ctx, name, name == AccountsName)
	if errors.Is(err, kv.ErrInUse) {
		err = fmt.Errorf("%w; stop the writer, readers need not stop", err)
	}
	return opened, err
}

// openLeased opens a store, or makes it.
func (k *Keyspace) openLeased(ctx context.Context, name string, shared bool) (kv.Store, error) {
	opened, err := AwaitLease(ctx, name, commandWait, func() (*cassandra.Store, error) {
		return k.cluster.Open(ctx, name, kv.Options{}, cassandra.Options{Shared: shared})
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// OpenCopy implements [Stores].
func (k *Keyspace) OpenCopy(ctx context.Context, name string, _ []*kv.Table) (kv.Store, error) {
	return k.openLeased(ctx, copyPrefix+name, name == AccountsName)
}

// Publish implements [Stores].
func (k *Keyspace) Publish(ctx context.Context, name string) error {
	err := k.cluster.Rename(ctx, copyPrefix+name, name)
	if errors.Is(err, kv.ErrConflict) {
		return errExists(name, k)
	}
	return err
}

// Discard implements [Stores].
func (k *Keyspace) Discard(ctx context.Context, name string) error {
	return k.cluster.Remove(ctx, copyPrefix+name)
}
