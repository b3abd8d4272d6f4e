package verify_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
)

// TestRemovedMeanwhile removes rows while they are checked, as another process can do in a cluster. The network is not
// called damaged for it.
func TestRemovedMeanwhile(t *testing.T) {
	for name, remove := range map[string]func(ctx context.Context, store kv.Store) error{
		"a rewind": func(ctx context.Context, store kv.Store) error {
			_, err := archive.Rewind(ctx, store, demoBlocks-5, new(audit.Progress))
			return err
		},
		"a window": func(ctx context.Context, store kv.Store) error {
			a, err := archive.Open(ctx, store)
			if err != nil {
				return err
			}
			return window.New(a, store, retention.Window{State: 3}, window.Options{}).Move(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &meanwhile{Store: imported(t, testChains()[0])}
			store.begin = func() {
				if err := remove(t.Context(), store.Store); err != nil {
					t.Error(err)
				}
			}
			options := verify.Options{To: audit.Head, Full: true}
			if report, err := verify.Run(t.Context(), store, options, new(audit.Progress)); !errors.Is(err, audit.ErrRemoved) {
				t.Errorf("%v, expected ErrRemoved; the report is %+v", err, report)
			}
			if report := mustRun(t, store, options); !report.Sound {
				t.Errorf("another check:\n%s", report.Finding.Text())
			}
		})
	}
}

// meanwhile is a store in which something happens before a table is walked for the first time.
type meanwhile struct {
	kv.Store
	once  sync.Once
	begin func()
}

// Walk implements kv.Store.
func (m *meanwhile) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	m.once.Do(m.begin)
	return m.Store.Walk(ctx, t, from)
}
