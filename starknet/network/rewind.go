package network

import (
	"context"

	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/kv"
	"ashlar/starknet/archive"
)

// Rewind implements [family.Rewinder].
func (Family) Rewind(ctx context.Context, store kv.Store, to uint64, progress *audit.Progress) (rewind.Done, error) {
	return archive.Rewind(ctx, store, to, progress)
}
