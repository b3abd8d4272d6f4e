package family

import (
	"context"

	"ashlar/history/audit"
	"ashlar/kv"
)

// Joiner is a [Family] whose networks can be put together from ranges of blocks. A family
// need not be one.
type Joiner interface {
	// Join copies the rows of another store of the network into a store, neither of which is
	// open elsewhere, or completes a join that was interrupted. Until it is complete, Open and
	// Verify return rows.ErrJoining. The other store is only read.
	Join(ctx context.Context, to, from kv.Store, progress *audit.Progress) (Joined, error)
}

// Joined is what a join did.
type Joined struct {
	First   uint64 // first block with state
	Border  uint64 // last block of one range and first of the other
	Settled uint64 // last block
	Rows    uint64 // written and removed
}
