package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// ErrNoSnapshots means that networks of a family have no snapshots.
var ErrNoSnapshots = errors.New("there are no snapshots of networks of this family")

// SnapshotCreate is ashlar snapshot create.
type SnapshotCreate struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	family.NewSnapshot
}

// Run writes a snapshot of a network, which a server may have open, and shows its progress
// on out.
func (s SnapshotCreate) Run(ctx context.Context, out *os.File) (err error) {
	stores, _, err := openStoresOf(ctx, s.Network, s.Data, s.Config, true)
	if err != nil {
		return fmt.Errorf("network %s: %w", s.Network, err)
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	dir, local := stores.(store.Dir)
	if !local {
		opened, f, err := app.OpenStore(ctx, stores, s.Network, kv.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		return errors.Join(s.write(ctx, f, opened, out), opened.Close())
	}
	ctx, copied, err := checkpoints(ctx, dir, control.Copying{For: control.ForSnapshot, Stores: []string{store.NetworkStore(s.Network)}}, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.release()) }()
	opened, f, err := openCopy(ctx, copied.sources[0].Dir)
	if err != nil {
		return fmt.Errorf("network %s: %w", s.Network, err)
	}
	err = errors.Join(s.write(ctx, f, opened, out), opened.Close())
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// openCopy opens a copy of a store.
func openCopy(ctx context.Context, dir string) (kv.Store, family.Family, error) {
	var found family.Family
	opened, err := store.Open(dir, kv.Options{ReadOnly: true, Logger: slog.Default(), Accept: func(r kv.Reader) error {
		found, _ = app.FamilyOf(ctx, r) // the family gets the error too
		return found.Accept(ctx, r)
	}})
	if errors.Is(err, kv.ErrNotFound) && found == nil {
		err = family.ErrNoBlocks
	}
	return opened, found, err
}

// snapshotter returns a family as one whose networks have snapshots.
func snapshotter(f family.Family) (family.Snapshotter, error) {
	if s, ok := f.(family.Snapshotter); ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %s (copy the network with `ashlar backup`)", ErrNoSnapshots, f.Name())
}

func (s SnapshotCreate) write(ctx context.Context, f family.Family, opened kv.Store, out *os.File) error {
	from, err := snapshotter(f)
	if err != nil {
		return fmt.Errorf("network %s: %w", s.Network, err)
	}
	under, err := from.CreateSnapshot(ctx, opened, s.NewSnapshot)
	if err != nil {
		return fmt.Errorf("network %s: %w", s.Network, err)
	}
	began := time.Now()
	bar := newProgress(out, "writing a snapshot", func() (status, bool) {
		return rateStatus(fmt.Sprintf("state of block %d", under.State().Number), began, under.Progress()), true
	})
	size, err := under.Run(ctx)
	bar.end()
	err = adviseOnFull(err, "There is no snapshot yet. Free some space and run the same command again: it begins anew, and removes what this one has written")
	if err != nil {
		return fmt.Errorf("network %s: snapshot of block %d: %w", s.Network, under.Head().Number, err)
	}
	slog.Info("snapshot written", "network", s.Network, "block", under.Head().Number, "hash", under.Head().Hash,
		"state_from", under.State().Number, "size", readableBytes(size), "folder", s.Folder, "took", bar.took())
	return nil
}

// rateStatus shows the progress of a snapshot.
func rateStatus(part string, began time.Time, done family.SnapshotProgress) status {
	s := status{part: part, kind: "part", since: began, share: done.Share}
	seconds := time.Since(began).Seconds()
	for _, rate := range done.Rates {
		s.brief += fmt.Sprintf("  %.0f %s", rate.Count/seconds, rate.Unit)
		s.fields = append(s.fields, rate.Unit, int(rate.Count/seconds))
	}
	return s
}

// SnapshotLoad is ashlar snapshot load.
type SnapshotLoad struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	Compact bool
	Memory  family.Bytes // that loading may take; 0: DefaultMemory
	family.Snapshot
}

// Run begins a network with a snapshot, or continues to, and shows its progress on out.
func (s SnapshotLoad) Run(ctx context.Context, out *os.File) error {
	if err := checkName(s.Network); err != nil {
		return err
	}
	i := Import{Data: s.Data, Config: s.Config, Network: s.Network, Compact: s.Compact, Memory: s.Memory}
	i.begin = func(ctx context.Context, f family.Family, p family.Place) (family.Import, error) {
		from, err := snapshotter(f)
		if err != nil {
			return nil, err
		}
		return from.LoadSnapshot(ctx, p, s.Snapshot)
	}
	return i.Run(ctx, out)
}

// SnapshotFlags returns the flags of ashlar snapshot load that belong to the family of new
// networks.
func SnapshotFlags() []family.Flag {
	if s, ok := app.Families().Default().(family.Snapshotter); ok {
		return s.SnapshotFlags()
	}
	return nil
}
