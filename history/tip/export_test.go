package tip

import (
	"context"
	"time"

	"ashlar/kv"
)

// JoinBy is Join with a board and a clock. It does not wait until the tip may be shown.
func (w *Watched) JoinBy(ctx context.Context, board kv.Board, now func() time.Time) error {
	return w.join(ctx, board, now)
}

// Step is what Run does again and again.
func (w *Watched) Step(ctx context.Context) error { return w.step(ctx) }

// Try is Current, which does not wait for other readers but reports whether it would.
func (w *Watched) Try(ctx context.Context) (sound bool, err error) {
	if w.agreement.fresh() {
		return true, nil
	}
	return w.stepSince(ctx, w.agreement.begun.Load())
}

// Layers returns the number of layers that are searched for a row that the branch does not have, and the number of rows in them.
func (b *Branch) Layers() (layers, rows int) {
	for _, layer := range b.layers {
		rows += len(layer.rows)
	}
	return len(b.layers), rows
}
