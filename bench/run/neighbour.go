package main

import (
	"context"
	"os"
	"path/filepath"

	"ashlar/internal/node"
)

// neighbour imports a chain repeatedly while servers are measured, to keep the disk and the
// processors busy. It is Ashlar's import for every server, so that all have the same
// neighbour.
type neighbour struct {
	cancel context.CancelFunc
	ended  chan error
}

// startNeighbour starts imports by Ashlar's program bin into a folder below o.work.
func startNeighbour(ctx context.Context, o options, bin string) *neighbour {
	ctx, cancel := context.WithCancel(ctx)
	n := &neighbour{cancel, make(chan error, 1)}
	go func() { n.ended <- importRepeatedly(ctx, o, bin) }()
	return n
}

// stop ends the imports and returns the error of one that failed.
func (n *neighbour) stop() error {
	n.cancel()
	return <-n.ended
}

// importRepeatedly imports until ctx is done or an import fails.
func importRepeatedly(ctx context.Context, o options, bin string) error {
	a := node.Ashlar{Bin: bin, Data: filepath.Join(o.work, "neighbour-data"), Network: "neighbour"}
	for ctx.Err() == nil {
		if err := os.RemoveAll(a.Data); err != nil {
			return err
		}
		process, err := a.Import(ctx, filepath.Join(o.chain, "genesis.json"), filepath.Join(o.chain, "chain.rlp"))
		if err != nil {
			return err
		}
		if _, err := process.Wait(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return os.RemoveAll(a.Data)
}
