package tip_test

import (
	"context"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncing is a store that counts the writes since its last Sync.
type syncing struct {
	kv.Store
	writes int
}

func (s *syncing) Write(ctx context.Context, batch kv.Batch) error {
	s.writes++
	return s.Store.Write(ctx, batch)
}

func (s *syncing) Sync(ctx context.Context) error {
	s.writes = 0
	return s.Store.Sync(ctx)
}

// TestChangesAreDurable: blocks and heads are durable when the method that sets them returns.
func TestChangesAreDurable(t *testing.T) {
	store := &syncing{Store: openStore(t, vfs.NewMem())}
	defer store.Close()
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	for what, change := range []func(){
		func() { grow(t, writer, ref(11, 'a'), settled) },
		func() { setHead(t, writer, ref(11, 'a')) },
		func() {
			if err := writer.Settled(t.Context(), ref(11, 'a')); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if change(); store.writes > 0 {
			t.Errorf("%d writes of change %d are not durable", store.writes, what)
		}
	}
}
