package archive_test

import (
	"context"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/kv"
)

// watched is a store that another process reads. It notices that rows are going to change after a while.
type watched struct {
	kv.Store
	t    *testing.T
	left int // how often the reader's note is read before it is gone
}

func (w *watched) Post(context.Context, string, []byte, time.Duration) error { return nil }

func (w *watched) Posts(ctx context.Context) (map[string][]byte, error) {
	if _, removing, err := kv.Epoch(ctx, w); !removing || err != nil {
		w.t.Errorf("the reader is waited for before it can know of it: %v", err)
	}
	if w.left--; w.left < 0 {
		return nil, nil
	}
	return map[string][]byte{"reader": {1}}, nil
}

func (w *watched) Write(ctx context.Context, b kv.Batch) error {
	if _, removing, err := kv.Epoch(ctx, w); err != nil || removing && w.left >= 0 {
		w.t.Errorf("rows are written while there is a reader: %v", err)
	}
	return w.Store.Write(ctx, b)
}

// TestJoinAwaitsReaders adds an archive below one that another process reads. Rows change when that has ended.
func TestJoinAwaitsReaders(t *testing.T) {
	chain := archive.GrowChain(t, 1298, 30)
	to := &watched{Store: chain.Between(t, 14, 30), t: t, left: 1}
	mustJoin(t, to, chain.Between(t, 0, 14))
	if to.left >= 0 {
		t.Error("the reader was not waited for")
	}
	checkSameRows(t, rowsOf(t, chain.Between(t, 0, 30)), rowsOf(t, to))
}
