package family

import (
	"context"

	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/kv"
)

// Rewinder is the part of a [Family] that takes networks back to an earlier block.
type Rewinder interface {
	// Rewind removes all blocks after a settled one from the store of a network that is
	// not open, or completes a rewind that was interrupted. Until it is complete, Open and
	// Verify return rows.ErrRewinding.
	Rewind(ctx context.Context, store kv.Store, to uint64, progress *audit.Progress) (rewind.Done, error)
}
