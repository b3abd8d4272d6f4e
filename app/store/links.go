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
	others, err := d.sharing(network, info)
	if err != nil {
		return err
	}
	linked := d.link(network) != ""
	for _, other := range others {
		otherLinked := d.link(other) != ""
		if otherLinked && !linked || otherLinked == linked && other > network {
			continue
		}
		return linkError(fmt.Sprintf("%s is the directory of the network %s, too (want a directory of its own: remove the link, or move what it names out of %s)", d.Network(network), other, d.networks()))
	}
	return nil
}

// sharing returns the other networks whose directory, perhaps behind a link, is that of a network.
func (d Dir) sharing(network string, info fs.FileInfo) (others []string, err error) {
	names, err := d.Names()
	for _, other := range names {
		if own, err := os.Stat(d.Network(other)); err == nil && other != network && os.SameFile(own, info) {
			others = append(others, other)
		}
	}
	return others, err
}

// CheckRemovable returns an error if the directory of a network is a symbolic link. Remove would leave its blocks.
func (d Dir) CheckRemovable(network string) error {
	target := d.link(network)
	if target == "" {
		return nil
	}
	if info, err := os.Stat(d.Network(network)); err == nil {
		others, err := d.sharing(network, info)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return fmt.Errorf("%s is a symbolic link to %s, which is the directory of the network %s, too: remove the link alone", d.Network(network), target, others[0])
		}
	}
	return fmt.Errorf("%s is a symbolic link to %s: expected a directory, which can be removed with its blocks; stop the server, then remove the link and what it names", d.Network(network), target)
}

// canonical returns the one path of a directory, which need not exist, that has no symbolic links. Pebble's
// lock excludes other processes from a directory, but its own process only from the same path.
func canonical(dir string) string {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if _, err := os.Lstat(absolute); errors.Is(err, fs.ErrPermission) {
		return dir // a directory above the working directory may not be searched
	}
	return resolved(absolute)
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
