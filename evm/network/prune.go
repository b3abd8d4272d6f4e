package network

import (
	"context"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
)

// Prune implements [family.Pruner].
func (Family) Prune(ctx context.Context, store kv.Store, w retention.Window, progress *audit.Progress) (done family.Pruned, err error) {
	if err := w.Check(); err != nil {
		return done, err
	}
	a, err := archive.Open(ctx, store)
	if err != nil {
		return done, err
	}
	options := window.DefaultOptions(nil)
	options.Steps, options.Grace, options.Work = 0, 0, 0 // nobody else reads or writes the store
	options.Progress = progress
	remover := window.New(a, store, w, options)
	err = remover.Move(ctx)
	extent := a.Extent()
	return family.Pruned{First: extent.Blocks, FirstState: extent.State, FirstProof: extent.Tries, Rows: remover.Rows()}, err
}
