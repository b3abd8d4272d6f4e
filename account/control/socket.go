package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"ashlar/filelock"
)

const (
	socketName = "control.sock"
	// maxSocketPath is the longest path, in bytes, that every operating system accepts for
	// a socket: sockaddr_un holds 104 to 108 bytes including the terminating 0.
	maxSocketPath = 103
)

// directory is a directory in which sockets can be addressed, however long its path.
type directory struct {
	path string
	file *os.File // open as long as a path through it is used; nil if path is short enough
	lock *os.File // the directory, locked; nil unless a server listens there
}

func openDirectory(path string) (*directory, error) {
	// The socket has its longest path in the staging directory, before it is renamed.
	longest := filepath.Join(path, stagingPattern+"1234567890", socketName)
	if len(longest) <= maxSocketPath {
		return &directory{path: path}, nil
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("the path of %s is too long for a socket in it: %d bytes, expected at most %d",
			path, len(path), maxSocketPath-(len(longest)-len(path)))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &directory{path: path, file: file}, nil
}

// address returns a path with which this process can bind or connect to a socket in d.
func (d *directory) address(name string) string {
	if d.file == nil {
		return filepath.Join(d.path, name)
	}
	return filepath.Join("/proc/self/fd", strconv.FormatUint(uint64(d.file.Fd()), 10), name)
}

func (d *directory) Close() error {
	var failed []error
	for _, file := range []*os.File{d.file, d.lock} {
		if file != nil {
			failed = append(failed, file.Close())
		}
	}
	return errors.Join(failed...)
}

// take locks the directory until it is closed. It waits for a server that is stopping. On a file system without locks, as some
// of networks are, nothing is locked.
func (d *directory) take() (err error) {
	if d.lock, err = os.Open(d.path); err != nil {
		return err
	}
	for end := time.Now().Add(reachTime); errors.Is(filelock.Lock(d.lock), filelock.ErrLocked); time.Sleep(reachPause) {
		if time.Now().After(end) {
			return fmt.Errorf("%s is in use: %w (want a directory for each process of a cluster, or none)", d.path, ErrInUse)
		}
	}
	return nil
}

const stagingPattern = ".control-"

// listen creates the socket of a data directory, which is locked. It replaces one left by a process that was
// killed. The socket is created in a staging directory that no other user may enter, and
// renamed once it has its final mode, so that other users can connect at no time.
func (d *directory) listen() (l *net.UnixListener, err error) {
	if err := d.take(); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, socketName)
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is in the way: it is a %s, expected a socket or nothing", path, info.Mode().Type())
	}
	staging, err := os.MkdirTemp(d.path, stagingPattern)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(staging))
		if err != nil && l != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	staged := filepath.Join(staging, socketName)
	l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: d.address(filepath.Join(filepath.Base(staging), socketName))})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the socket will have been renamed
	if err := os.Chmod(staged, 0o600); err != nil {
		return l, err
	}
	return l, os.Rename(staged, path)
}

func (d *directory) remove() error { return os.Remove(filepath.Join(d.path, socketName)) }
