package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ashlar/kv"
)

// linkError is the error of a directory of networks that is not the store of its own network. It is a
// kv.ErrForeign: no store is damaged.
type linkError string

func (e linkError) Error() string      { return string(e) }
func (linkError) Is(target error) bool { return target == kv.ErrForeign }

// link returns where the directory of a network leads if it is a symbolic link, or "".
func (d Dir) link(network string) string {
	target, err := os.Readlink(d.Network(network))
	if err != nil {
		return ""
	}
	return target
}

// checkOwn returns an error if the directory of a network is a symbolic link that cannot be followed,
// or the directory of another network, too.
func (d Dir) checkOwn(network string) error {
	place, target := d.Network(network), d.link(network)
	info, err := os.Stat(place)
	if err == nil {
		return d.checkAlias(network, info)
	}
	if target == "" {
		return nil // there is no store yet, or it does not open
	}
	why := "does not exist"
	if !errors.Is(err, fs.ErrNotExist) {
		if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
			err = cause.Err
		}
		why = fmt.Sprintf("cannot be reached: %v", err)
	}
	return linkError(fmt.Sprintf("%s is a symbolic link to %s, which %s (want a directory; is its disk mounted?)", place, target, why))
}

// checkAlias returns an error if another network has the same directory, and is the one that may use it: a
// directory comes before a link, and links in the order of their names. The choice must not depend on which is
// opened first: the network would be served under one name today, and under another tomorrow.
func (d Dir) checkAlias(network string, info fs.FileInfo) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	linked := d.link(network) != ""
	for _, other := range names {
		otherLinked := d.link(other) != ""
		if other == network || otherLinked && !linked || otherLinked == linked && other > network {
			continue
		}
		if same, err := os.Stat(d.Network(other)); err == nil && os.SameFile(info, same) {
			return linkError(fmt.Sprintf("%s is the directory of the network %s, too (want a directory of its own)", d.Network(network), other))
		}
	}
	return nil
}

// CheckRemovable returns an error if the directory of a network is a symbolic link. Remove would leave its blocks.
func (d Dir) CheckRemovable(network string) error {
	target := d.link(network)
	if target == "" {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link to %s: expected a directory, which can be removed with its blocks; stop the server, then remove the link and what it names", d.Network(network), target)
}

// canonical returns the one path of a directory, which need not exist, that has no symbolic links. Pebble's
// lock excludes other processes from a directory, but its own process only from the same path.
func canonical(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return resolved(dir)
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(resolved(above), filepath.Base(path))
}
