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
	"ashlar/kv"
)

// errNotJoined means that a network's family has no ranges to join.
var errNotJoined = errors.New("cannot be joined")

// Join is ashlar join.
type Join struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	From    string // where the other range is: a data directory or a configuration file
	Pause   bool   // a running server stops serving the network meanwhile
}

// Run adds the other range to the network, shows the progress on bar, and writes what it did
// to out.
func (j Join) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	done, err := j.run(ctx, bar)
	if err != nil {
		return ofNetwork(j.Network, err)
	}
	_, err = fmt.Fprintf(out, "%s: joined at block %d: states of blocks %d to %d, %s written and removed in %s\n", j.Network,
		done.Border, done.First, done.Settled, family.Counted(done.Rows, "row"), time.Since(started).Round(100*time.Millisecond))
	return err
}

func (j Join) run(ctx context.Context, bar *os.File) (done family.Joined, err error) {
	data, c, err := openStoresOf(ctx, j.Network, j.Data, j.Config, false)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	other, err := openPlace(ctx, j.From)
	if err != nil {
		return done, fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	if other.String() == data.String() {
		return done, fmt.Errorf("--from is the place of the network itself, %s", data)
	}
	if exists, err := other.Exists(ctx, j.Network); err != nil {
		return done, fmt.Errorf("--from: %w", err)
	} else if !exists {
		return done, fmt.Errorf("--from: %w", store.NotFound(ctx, other, j.Network))
	}
	from, err := other.OpenToCopy(ctx, store.NetworkStore(j.Network))
	if err != nil {
		return done, fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = duringPause(ctx, c, j.Network, j.Pause, func() error {
		done, err = j.join(ctx, data, from, bar)
		return err
	})
	return done, err
}

func (j Join) join(ctx context.Context, data store.Stores, from kv.Store, bar *os.File) (done family.Joined, err error) {
	var joiner family.Joiner
	accept := func(r kv.Reader) error {
		f, err := app.FamilyOf(ctx, r)
		if err != nil {
			return err
		}
		var ok bool
		if joiner, ok = f.(family.Joiner); !ok {
			return fmt.Errorf("%w: networks of family %s hold no state", errNotJoined, f.Name())
		}
		return acceptIncomplete(ctx, f, r)
	}
	err = change(data, j.Network, accept, "joining", bar, func(opened kv.Store, progress *audit.Progress) error {
		done, err = joiner.Join(ctx, opened, from, progress)
		return err
	})
	return done, err
}
