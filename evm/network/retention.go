package network

import (
	"context"
	"log/slog"

	"ashlar/evm/archive/window"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/retry"
)

// keeper keeps a network to a window of its last blocks.
type keeper struct {
	kept    retention.Window
	remover *window.Remover
	task    *retry.Task
}

// keep returns how the network is kept to its window, nil if it keeps all history.
func (n *network) keep(s family.Service) *keeper {
	w := n.entries.Retention
	if w.All() {
		return nil
	}
	log := slog.With("network", s.Name)
	return &keeper{kept: w, remover: window.New(n.archive, n.store, w, window.DefaultOptions(log)), task: retry.New("remove old history", log)}
}

// run removes what is older than the window until ctx is done.
func (r *keeper) run(ctx context.Context) error {
	return r.task.Keep(ctx, func(ctx context.Context) error { return r.remover.Run(ctx, r.task.Succeeded) })
}

// status returns how the removal is, nil if all history is kept.
func (r *keeper) status() *family.Retention {
	if r == nil {
		return nil
	}
	status := &family.Retention{Window: r.kept, Removing: r.remover.Removing(), Rows: r.remover.Rows()}
	if stopped := r.task.Stopped(); stopped != nil {
		status.Problem = stopped.Err.Error()
	}
	return status
}
