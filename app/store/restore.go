package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ashlar/gateway"
	"ashlar/kv"
)

// AccountsName is the name of the accounts' store in backups.
const AccountsName = "accounts"

const networkPrefix = "networks/"

// NetworkStore returns the name of a network's store in backups.
func NetworkStore(network string) string { return networkPrefix + network }

// CheckStoreName returns an error if no store has this name in backups.
func CheckStoreName(name string) error {
	network, ok := strings.CutPrefix(name, networkPrefix)
	if name == AccountsName || ok && gateway.CheckNetworkName(network) == nil {
		return nil
	}
	return fmt.Errorf("unknown store %q (want %s or %sNAME)", name, AccountsName, networkPrefix)
}

// place returns the directory of a store by its name in backups.
func (d Dir) place(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Staging returns the directory in which a restore collects stores.
func (d Dir) Staging() string { return filepath.Join(string(d), ".restore") }

// HasStore reports whether a store exists, by its name in backups.
func (d Dir) HasStore(name string) bool {
	_, err := os.Lstat(d.place(name))
	return err == nil
}

// Lock prevents other processes from opening the named stores, of which some may not exist, so that they can be replaced.
// Its error is a kv.ErrInUse if one of them is open, and a kv.ErrCheckpoint while one is being copied.
func (d Dir) Lock(names []string) (unlock func() error, err error) {
	var held []io.Closer
	unlock = func() (err error) {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	for _, name := range names {
		info, err := os.Lstat(d.place(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.IsDir() {
			what := "not a directory"
			if info.Mode().Type() == fs.ModeSymlink {
				what = "a symbolic link"
			}
			err = fmt.Errorf("%s is %s: expected a directory, which can be replaced", d.place(name), what)
		}
		var lock io.Closer
		if err == nil {
			lock, err = lockToReplace(d.place(name))
		}
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		held = append(held, lock)
	}
	return unlock, nil
}

// Reserve prevents other processes from opening a store until free, also one that is being copied. Its error is a kv.ErrInUse if one
// has it open, and a kv.ErrNotFound if there is none.
func (d Dir) Reserve(name string) (free func() error, err error) {
	if !d.HasStore(name) {
		return nil, fmt.Errorf("%s in %s: %w", name, d, kv.ErrNotFound)
	}
	lock, err := lockStore(d.place(name))
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// Replace moves stores from Staging to their places, and removes the stores that were
// there. Each store is replaced by one rename, so all of them are whole whenever the
// process is killed. The caller must hold Lock.
func (d Dir) Replace(names []string) error {
	if err := os.MkdirAll(d.networks(), 0o755); err != nil {
		return err
	}
	staged := Dir(d.Staging())
	for _, name := range names {
		var err error
		if d.HasStore(name) {
			err = exchange(staged.place(name), d.place(name))
		} else {
			err = os.Rename(staged.place(name), d.place(name))
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", d.place(name), err)
		}
	}
	for _, dir := range []string{d.networks(), string(d)} {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(d.Staging())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// OpenExisting opens a store by its name in backups, to copy it. An error names the store.
func (d Dir) OpenExisting(name string) (kv.Store, error) {
	network, isNetwork := strings.CutPrefix(name, networkPrefix)
	switch {
	case !d.HasStore(name):
		return nil, fmt.Errorf("%s: not found in %s", name, d)
	case !isNetwork:
		return d.OpenAccounts(nil)
	}
	opened, err := d.OpenNetwork(network, kv.Options{Existing: true})
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, fmt.Errorf("%s: %s has no store; is its disk mounted?", name, d.Network(network))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return opened, nil
}
