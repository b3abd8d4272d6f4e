package family

import (
	"context"

	"ashlar/chain"
	"ashlar/kv"
)

// Snapshotter is a [Family] whose networks can be written to snapshots, and begin with them.
// A family need not be one.
type Snapshotter interface {
	// CreateSnapshot prepares a snapshot of the network in a store, which is only read. It
	// returns ErrRange if the network does not have the blocks or their state. Nothing is
	// written yet.
	CreateSnapshot(ctx context.Context, store kv.Store, s NewSnapshot) (Snapshotting, error)
	// SnapshotFlags are the flags of ashlar snapshot load that only this family has.
	SnapshotFlags() []Flag
	// LoadSnapshot opens a network to begin it with a snapshot, or to continue to. If there
	// is no error, the import must be closed. It imports no files.
	LoadSnapshot(ctx context.Context, p Place, s Snapshot) (Import, error)
}

// NewSnapshot is a snapshot that is to be made.
type NewSnapshot struct {
	Folder string  // where to; made if it does not exist
	Block  *uint64 // nil: the newest settled block
	From   *uint64 // first block with state; nil: the same
}

// Snapshotting is a snapshot that is prepared.
type Snapshotting interface {
	// State is the first block with state, Head the last block.
	State() chain.Ref
	Head() chain.Ref
	// Run writes the snapshot and returns its size. If it fails, the next one begins anew.
	Run(ctx context.Context) (bytes int64, err error)
	// Progress says how far Run is. It may be called at the same time.
	Progress() SnapshotProgress
}

// SnapshotProgress is what was written so far.
type SnapshotProgress struct {
	Share float64 // of the state
	Rates []Rate
}

// Snapshot is a snapshot that is to be loaded.
type Snapshot struct {
	From  string            // a folder or a URL
	Block string            // hash of its last block
	Flags map[string]string // the flags that were given, by name
}
