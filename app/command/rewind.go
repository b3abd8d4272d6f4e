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
	"ashlar/history/rewind"
	"ashlar/kv"
)

// Rewind is ashlar rewind.
type Rewind struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	To      uint64
	Pause   bool // a running server stops serving the network meanwhile
}

// Run takes the network back to block To, shows the progress on bar, and writes what it did
// to out.
func (r Rewind) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	var done rewind.Done
	err := inStores(ctx, r.Network, r.Data, r.Config, r.Pause, func(data store.Stores) (err error) {
		done, err = r.rewind(ctx, data, bar)
		return err
	})
	if err != nil {
		return ofNetwork(r.Network, err)
	}
	_, err = fmt.Fprintf(out, "%s: went back from block %d to %d 0x%x, %s removed in %s\n", r.Network,
		done.From.Number, done.To.Number, done.To.Hash, family.Counted(done.Rows, "row"), time.Since(started).Round(100*time.Millisecond))
	return err
}

func (r Rewind) rewind(ctx context.Context, data store.Stores, bar *os.File) (done rewind.Done, err error) {
	var f family.Family
	accept := func(store kv.Reader) (err error) {
		if f, err = app.FamilyOf(ctx, store); errors.Is(err, kv.ErrNotFound) {
			return err
		}
		return acceptIncomplete(ctx, f, store)
	}
	err = change(data, r.Network, accept, "rewinding", bar, func(opened kv.Store, progress *audit.Progress) error {
		done, err = f.Rewind(ctx, opened, r.To, progress)
		return err
	})
	return done, err
}
