package archive

import (
	"context"

	"ashlar/chain"
	"ashlar/history/rows"
)

// pointerLayer1 is the block up to which blocks are known to be accepted on layer 1: number and hash.
const pointerLayer1 = "layer1"

// Layer1 returns what SetLayer1 stored last, perhaps in another process, or false. A rewind may have removed the block since.
func (a *Archive) Layer1(ctx context.Context) (ref chain.Ref, stored bool, err error) {
	return rows.Block(ctx, a.store, pointerLayer1)
}

// SetLayer1 stores the block up to which blocks are known to be accepted on layer 1.
func (a *Archive) SetLayer1(ctx context.Context, ref chain.Ref) error {
	batch := a.store.NewBatch()
	rows.SetBlock(batch, pointerLayer1, ref)
	return a.store.Write(ctx, batch)
}
