package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ashlar/gateway"
	"ashlar/kv"
)

// Dir is a data directory. It has one store for the accounts and one for each network:
//
//	DIR/accounts/          accounts and API keys; only the service's user may read it
//	DIR/networks/NAME/     the history of the network NAME
//	DIR/backup-HASH.json   how the backups to one target went
//	DIR/control.sock       the socket of a running server, for commands
//	DIR/engine/            secrets of consensus clients
//	DIR/certificates/      certificates from ACME
type Dir string

func (d Dir) accounts() string { return filepath.Join(string(d), "accounts") }
func (d Dir) networks() string { return filepath.Join(string(d), "networks") }

// Network returns the directory of a network's store.
func (d Dir) Network(name string) string { return filepath.Join(d.networks(), name) }

// Has reports whether a network has a store, also one on a disk that is not mounted.
func (d Dir) Has(network string) bool {
	_, err := os.Lstat(d.Network(network))
	return err == nil
}

// besides are what a data directory may have besides its stores, as patterns. Some of it may be there before the first
// store: the secret of a consensus client, or what was copied from another disk.
func besides() []string { return []string{"engine", "certificates", "control.sock", "backup-*.json"} }

// Check returns an error if the directory has foreign contents, before anything is written
// to it. An empty or missing directory is accepted.
func (d Dir) Check() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return fmt.Errorf("data directory %s: %w", d, file.Err)
	}
	if err != nil {
		return fmt.Errorf("data directory %s: %w", d, err)
	}
	var foreign string
	for _, entry := range entries {
		switch name := entry.Name(); {
		case (name == filepath.Base(d.accounts()) || name == filepath.Base(d.networks())) && !entry.Type().IsRegular(): // unlike /etc/networks
			return nil
		case name[0] != '.' && name != "lost+found" && !isBeside(name): // the root of a filesystem has lost+found
			foreign = name
		}
	}
	if foreign == "" {
		return nil
	}
	err = fmt.Errorf("%s is not a data directory: it has %q, and neither accounts nor networks; expected a directory that ashlar made, or an empty one", d, foreign)
	if above := d.above(); above != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, above)
	}
	return err
}

// above returns the data directory whose networks, or one of whose stores, the directory is; "" if there is none.
func (d Dir) above() string {
	path := filepath.Clean(string(d))
	if absolute, err := filepath.Abs(path); err == nil && strings.HasPrefix(path, ".") { // its name does not say what is above
		path = absolute
	}
	for _, above := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if path == Dir(above).networks() || path == Dir(above).accounts() || filepath.Dir(path) == Dir(above).networks() {
			return above
		}
	}
	return ""
}

func isBeside(name string) bool {
	return slices.ContainsFunc(besides(), func(pattern string) bool {
		matches, err := filepath.Match(pattern, name)
		return err == nil && matches
	})
}

// CheckThere is Check for commands that do not create a data directory. If it does not
// exist, its name is probably misspelled.
func (d Dir) CheckThere() error {
	if _, err := os.Stat(string(d)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s: no such directory", d)
	}
	return d.Check()
}

// AmongNetworks reports whether a path, which need not exist, is where the stores of networks are, or
// inside of it or of a store. A folder there would be taken for a network, or for a part of one.
func (d Dir) AmongNetworks(path string) bool { return within(path, d.networkPlaces()) }

// Contains reports whether a path, which need not exist, is the directory, inside of it, or inside of a
// store that a symbolic link in it leads to.
func (d Dir) Contains(path string) bool {
	return within(path, append(d.networkPlaces(), string(d), d.accounts()))
}

// networkPlaces returns the directory in which networks are, and those of the networks.
func (d Dir) networkPlaces() []string {
	places := []string{d.networks()}
	names, err := d.Names()
	if err != nil {
		return places // there are no networks that could be read
	}
	for _, name := range names {
		places = append(places, d.Network(name))
	}
	return places
}

// within reports whether a path, which need not exist, is one of the directories or inside of one.
func within(path string, dirs []string) bool {
	var roots []fs.FileInfo
	for _, dir := range dirs {
		if root, err := os.Stat(dir); err == nil {
			roots = append(roots, root)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // whose parents are the real ones
		}
		if info, err := os.Stat(path); err == nil && slices.ContainsFunc(roots, func(root fs.FileInfo) bool { return os.SameFile(root, info) }) {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}

// Names lists the networks that have a store.
func (d Dir) Names() ([]string, error) {
	if err := d.CheckThere(); err != nil {
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
		if gateway.CheckNetworkName(entry.Name()) == nil && d.isStore(entry) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// isStore reports whether an entry of networks is a store: a directory, or a symbolic link to
// one. A link whose target does not exist counts, too: a disk that is not mounted must not let
// the network vanish from the service and from backups without an error.
func (d Dir) isStore(entry fs.DirEntry) bool {
	if entry.Type() != fs.ModeSymlink {
		return entry.IsDir()
	}
	info, err := os.Stat(d.Network(entry.Name()))
	return err != nil || info.IsDir()
}

// Bytes returns the size of a network's store on disk, without checkpoints, most of whose files are the store's.
func (d Dir) Bytes(network string) (int64, error) {
	sum, err := bytesBelow(d.Network(network))
	if err != nil {
		return 0, fmt.Errorf("network %s: size of its store: %w", network, err)
	}
	return sum, nil
}

func bytesBelow(dir string) (sum int64, err error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return 0, withoutGone(err)
	}
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err == nil && path == filepath.Join(root, copiesFolder):
			return filepath.SkipDir
		case err != nil || entry.IsDir():
			return withoutGone(err)
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return withoutGone(err)
	})
	return sum, err
}

// withoutGone returns an error unless it is about a file that does not exist: an open store
// removes files.
func withoutGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removed marks the directory of a network whose removal has begun. It is not a name of a
// network.
const removed = ".removed-"

// Remove removes the store of a network, unless that is a symbolic link. Its error is a kv.ErrInUse if a
// process has it open, and a kv.ErrCheckpoint while one copies it. If it is interrupted, the network is gone all
// the same, and the next Remove removes the rest.
func (d Dir) Remove(network string) error {
	if err := gateway.CheckNetworkName(network); err != nil {
		return err
	}
	if _, err := d.RemoveRest(network); err != nil || !d.Has(network) {
		return err
	}
	return d.removeStore(network)
}

// RemoveRest removes what an interrupted Remove left of a network, and reports whether there was anything.
func (d Dir) RemoveRest(network string) (found bool, err error) {
	gone := d.gone(network)
	if _, err := os.Lstat(gone); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, os.RemoveAll(gone)
}

// gone is where the directory of a network is while it is removed.
func (d Dir) gone(network string) string { return filepath.Join(d.networks(), removed+network) }

func (d Dir) removeStore(network string) error {
	if err := d.CheckRemovable(network); err != nil {
		return err
	}
	gone := d.gone(network)
	lock, err := lockToReplace(d.Network(network))
	if err != nil {
		return err
	}
	if err := errors.Join(os.Rename(d.Network(network), gone), lock.Close()); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// OpenAccounts opens or creates the store of the accounts.
func (d Dir) OpenAccounts(accept func(kv.Reader) error) (kv.Store, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	store, err := Open(d.accounts(), kv.Options{CacheBytes: 1 << 20, BufferBytes: 1 << 20, Private: true, Logger: slog.With("part", "accounts"), Accept: accept})
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	return store, nil
}

// OpenNetwork opens or creates the store of a network.
func (d Dir) OpenNetwork(name string, o kv.Options) (kv.Store, error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.networks(), 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := d.checkOwn(name); err != nil {
		return nil, err
	}
	o.Logger = slog.With("network", name)
	return Open(d.Network(name), o)
}
