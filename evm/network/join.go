package network

import (
	"context"

	"ashlar/evm/archive/join"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/kv"
)

// Join implements [family.Joiner].
func (Family) Join(ctx context.Context, to, from kv.Store, progress *audit.Progress) (family.Joined, error) {
	done, err := join.Run(ctx, to, from, join.Options{Progress: progress})
	return family.Joined{First: done.First, Border: done.Border, Settled: done.Settled.Number, Rows: done.Rows}, err
}
