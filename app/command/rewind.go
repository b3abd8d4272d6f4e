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
	"ashlar/gateway"
	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/kv"
)

// Rewind is ashlar rewind.
type Rewind struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	To      uint64
}

// Run takes the network back to block To, shows the progress on bar, and writes what it did
// to out.
func (r Rewind) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	done, err := r.run(ctx, bar)
	if err != nil {
		return fmt.Errorf("network %s: %w", r.Network, err)
	}
	_, err = fmt.Fprintf(out, "%s: went back from block %d to %d 0x%x, %s rows removed in %s\n", r.Network,
		done.From.Number, done.To.Number, done.To.Hash, family.Count(done.Rows), time.Since(started).Round(100*time.Millisecond))
	return err
}

func (r Rewind) run(ctx context.Context, bar *os.File) (done rewind.Done, err error) {
	if err := gateway.CheckNetworkName(r.Network); err != nil {
		return done, err
	}
	data, _, err := openStores(ctx, r.Data, r.Config, false)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if dir, ok := data.(store.Dir); ok {
		if err := dir.CheckThere(); err != nil {
			return done, err
		}
	}
	if exists, err := data.Exists(ctx, r.Network); err != nil {
		return done, err
	} else if !exists {
		return done, store.NotFound(ctx, data, r.Network)
	}
	f := app.Families().Default() // its error describes an unreadable format
	accept := func(store kv.Reader) error {
		format, err := rows.Format(ctx, store)
		if errors.Is(err, kv.ErrNotFound) {
			return family.ErrNoBlocks
		}
		if of, ok := app.Families().OfFormat(format); ok {
			f = of
		}
		return nil
	}
	opened, err := data.OpenNetwork(r.Network, kv.Options{CacheBytes: verifyCache, Accept: accept})
	if err != nil {
		return done, err
	}
	defer func() {
		if closeErr := opened.Close(); !errors.Is(err, kv.ErrFailed) { // else it repeats the error
			err = errors.Join(err, closeErr)
		}
	}()
	progress := new(audit.Progress)
	shown := newProgress(bar, "rewinding", func() (status, bool) { return verifyStatus(progress) })
	defer shown.end()
	return f.Rewind(ctx, opened, r.To, progress)
}
