package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
)

// errNotPruned means that nothing can be removed from networks of a family.
var errNotPruned = errors.New("cannot be pruned")

// Prune is ashlar prune.
type Prune struct {
	Data    string
	Network string
	Keep    retention.Window
	Pause   bool // a running server stops serving the network meanwhile
}

// Run removes what is older than Keep, shows the progress on bar, and writes what it did to out.
func (p Prune) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	var done family.Pruned
	err := inStores(ctx, p.Network, p.Data, "", p.Pause, func(data store.Stores) (err error) {
		done, err = p.prune(ctx, data, bar)
		return err
	})
	if err != nil {
		return ofNetwork(p.Network, err)
	}
	_, err = fmt.Fprintf(out, "%s: has proofs from block %d on, the state from block %d on, and blocks from block %d on; %s removed in %s\n", p.Network,
		done.FirstProof, done.FirstState, done.First, family.Counted(done.Rows, "row"), time.Since(started).Round(100*time.Millisecond))
	return err
}

func (p Prune) prune(ctx context.Context, data store.Stores, bar *os.File) (done family.Pruned, err error) {
	var pruner family.Pruner
	accept := func(r kv.Reader) error {
		f, err := app.FamilyOf(ctx, r)
		if err != nil {
			return err
		}
		var ok bool
		if pruner, ok = f.(family.Pruner); !ok {
			return fmt.Errorf("%w: a network of family %s keeps all that it has", errNotPruned, f.Name())
		}
		return f.Accept(ctx, r)
	}
	err = change(data, p.Network, accept, "pruning", bar, func(opened kv.Store, progress *audit.Progress) error {
		done, err = pruner.Prune(ctx, opened, p.Keep, progress)
		return err
	})
	return done, err
}
