package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"ashlar/chain"
	"ashlar/family"
	"ashlar/kv"
)

// fullFamily is a family whose snapshots do not fit on their disk.
type fullFamily struct {
	family.Family
	family.Snapshotter
}

func (fullFamily) CreateSnapshot(context.Context, kv.Store, family.NewSnapshot) (family.Snapshotting, error) {
	return fullSnapshot{}, nil
}

type fullSnapshot struct{}

func (fullSnapshot) State() chain.Ref                  { return chain.Ref{Number: 7} }
func (fullSnapshot) Head() chain.Ref                   { return chain.Ref{Number: 9} }
func (fullSnapshot) Progress() family.SnapshotProgress { return family.SnapshotProgress{} }
func (fullSnapshot) Run(context.Context) (int64, error) {
	return 0, &fs.PathError{Op: "write", Path: "/mnt/snapshot/slots-00000-0123456789abcdef.zst.unfinished", Err: syscall.ENOSPC}
}

// A snapshot that does not fit on its disk says what to do.
func TestSnapshotOnFullDisk(t *testing.T) {
	err := SnapshotCreate{Network: "demo"}.write(t.Context(), fullFamily{}, nil, os.Stderr)
	if !errors.Is(err, kv.ErrFull) || !strings.HasPrefix(err.Error(), "network demo: snapshot of block 9: the disk is full: write /mnt/snapshot/") || !strings.Contains(err.Error(), "Free some space and run the same command again") {
		t.Errorf("got %v, expected that the disk is full, and advice", err)
	}
}
