package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/backup"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// openTarget opens a folder or a bucket. It asks nothing of it yet, so an error is one of the
// argument or of the environment that belongs to it.
func openTarget(place string) (backup.Target, error) {
	target, err := backup.OpenTarget(place)
	return target, family.Usage(err)
}

// Backup is ashlar backup.
type Backup struct {
	Data     string
	To       string   // a folder, or s3://BUCKET/PREFIX
	Networks []string // empty: all, and the accounts
	Keep     int      // number of backups to keep; 0: all
	Rehash   bool

	beside bool // a server is expected, which may be about to start
}

// Run copies the accounts and networks of a data directory, which a server may have open,
// and shows its progress on bar. A store that cannot be opened or copied does not keep the others from being backed up;
// the error names it.
func (b Backup) Run(ctx context.Context, bar *os.File) error {
	data := store.Dir(b.Data)
	if err := data.CheckThere(); err != nil {
		return err
	}
	target, err := openTarget(b.To)
	if err != nil {
		return err
	}
	if folder, ok := backup.Folder(target); ok && data.Contains(folder) {
		// In networks/, its folders would be taken for networks, and no server would start.
		return family.Usage(fmt.Errorf("target %q is inside the data directory %s (want a folder elsewhere)", folder, data))
	}
	wanted, err := wantedStores(ctx, data, b.Networks)
	if err != nil {
		return err
	}
	made, lacking, err := b.make(ctx, data, target, wanted, bar)
	if err != nil && ctx.Err() != nil {
		return err // it was interrupted, and did not fail
	}
	err = adviseOnFull(err, "Earlier backups stay as they are. Free some space and run the same command again: it uses what is copied")
	if recordErr := backup.RecordOutcome(b.Data, target, wanted, made, err != nil); recordErr != nil {
		slog.Error("the outcome of the backup is not recorded, so metrics lack it", "error", recordErr)
	}
	return errors.Join(lacking, err)
}

// make makes one backup of the wanted stores, and removes older ones. made is nil if the target does not have it. lacking says
// which stores it does not have, and why. Such a backup removes no older ones: they may be the last that have these stores.
func (b Backup) make(ctx context.Context, data store.Dir, target backup.Target, wanted []string, bar *os.File) (made *backup.Made, lacking, err error) {
	if err := backup.CheckKept(ctx, b.Data, target); err != nil {
		return nil, nil, err
	}
	ctx, copied, err := checkpoints(ctx, data, control.Copying{For: control.ForBackup, Stores: wanted}, b.beside)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, copied.release()) }()
	moved := new(backup.Progress)
	shown := newProgress(bar, "backing up", func() (status, bool) { return copyStatus(moved) })
	done, err := backup.Make(ctx, target, copied.sources, backup.Options{
		Version: app.ClientVersion(), Rehash: b.Rehash, Lacks: copied.lacks(wanted), Partial: len(b.Networks) > 0,
	}, moved)
	shown.end()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, nil, err
	}
	slog.Info("backed up", "backup", done.Name, "stores", len(copied.sources), "size", readableBytes(done.Bytes), "stored", readableBytes(done.Stored), "took", shown.took())
	if why := copied.why(); why != nil {
		if b.Keep > 0 {
			slog.Warn("old backups are not removed, because the new one is not complete", "backup", done.Name)
		}
		return &done, fmt.Errorf("backup %s is not complete: it lacks %w", done.Name, why), nil
	}
	if b.Keep == 0 {
		return &done, nil, nil
	}
	removed, err := backup.Prune(ctx, target, b.Keep)
	if removed > 0 {
		slog.Info("old backups removed", "removed", removed)
	}
	return &done, nil, err
}

// adviseOnFull adds to the error of a file that did not fit on its disk what to do. The errors of stores say it already.
func adviseOnFull(err error, advice string) error {
	var file *fs.PathError
	if errors.Is(err, kv.ErrFull) || !errors.As(err, &file) || !kv.IsFull(file) {
		return err
	}
	return fmt.Errorf("%w: %w. %s", kv.ErrFull, err, advice)
}

// Repeat makes backups until ctx is done, with the given time between two. One that fails
// is logged, unless the next one cannot succeed either: its arguments are wrong. A server is expected: it may have been
// started at the same moment.
func (b Backup) Repeat(ctx context.Context, every time.Duration, bar *os.File) error {
	b.beside = true
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := b.Run(ctx, bar)
		if wrong := new(family.UsageError); errors.As(err, &wrong) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			slog.Error("backup failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// wantedStores lists the stores of the named networks, or all stores, by their names in
// backups.
func wantedStores(ctx context.Context, data store.Dir, networks []string) (wanted []string, err error) {
	all := len(networks) == 0
	if all {
		if networks, err = data.Names(); err != nil {
			return nil, err
		}
		if data.HasStore(store.AccountsName) {
			wanted = append(wanted, store.AccountsName)
		}
	}
	for _, network := range networks {
		name := store.NetworkStore(network)
		if err := store.CheckStoreName(name); err != nil {
			return nil, err
		}
		if !data.HasStore(name) {
			return nil, fmt.Errorf("network %s: %w", network, store.NotFound(ctx, data, network))
		}
		wanted = append(wanted, name)
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("%s has no accounts and no networks", data)
	}
	return wanted, nil
}

// copyStatus returns the progress of a backup or a restore.
func copyStatus(p *backup.Progress) (status, bool) {
	name, done, total, since := p.Now()
	if since.IsZero() || total == 0 {
		return status{}, false
	}
	rate := int64(float64(done) / max(time.Since(since).Seconds(), 1e-3))
	return status{
		part: name, kind: "store", since: since, share: float64(done) / float64(total),
		brief:  fmt.Sprintf("%s of %s  %s/s", readableBytes(done), readableBytes(total), readableBytes(rate)),
		fields: []any{"bytes", done, "of", total, "bytes_per_second", rate},
	}, true
}
