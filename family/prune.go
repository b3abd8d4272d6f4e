package family

import (
	"context"

	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
)

// Pruner is a [Family] whose networks can lose older history. A family need not be one.
type Pruner interface {
	// Prune removes what is older than a window from an embedded store of a network that is not open
	// elsewhere, or completes a removal that was interrupted. Until it is complete, the network has
	// the window, and some rows that nothing reads.
	Prune(ctx context.Context, store kv.Store, w retention.Window, progress *audit.Progress) (Pruned, error)
}

// Pruned is what a network has after a removal.
type Pruned struct {
	First, FirstState, FirstProof uint64 // the first block, and those with state and with proofs
	Rows                          uint64 // that were removed
}
