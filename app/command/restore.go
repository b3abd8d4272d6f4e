package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"ashlar/app/backup"
	"ashlar/app/store"
)

// Restore is ashlar restore.
type Restore struct {
	From     string
	Backup   string // its name; empty: the newest
	Data     string
	Networks []string // to restore
	Accounts bool     // to restore; without it and Networks: all networks, and the accounts
	Replace  bool     // stores that exist
}

// Run writes the stores of a backup into a data directory. Nothing there changes before
// the hash of every file has been checked.
func (r Restore) Run(ctx context.Context, bar *os.File) (err error) {
	data := store.Dir(r.Data)
	if err := data.Check(); err != nil {
		return err
	}
	target, manifest, err := r.load(ctx)
	if err != nil {
		return err
	}
	if err := r.checkComplete(ctx, target, manifest); err != nil {
		return err
	}
	var names, existing []string
	for _, s := range manifest.Stores {
		if err := store.CheckStoreName(s.Name); err != nil {
			return err
		}
		names = append(names, s.Name)
		if data.HasStore(s.Name) {
			existing = append(existing, s.Name)
		}
	}
	if len(existing) > 0 && !r.Replace {
		return fmt.Errorf("%s has %s already: expected a directory without, or --replace", data, strings.Join(existing, ", "))
	}
	unlock, err := data.Lock(names)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	done := new(backup.Progress)
	shown := newProgress(bar, "restoring", func() (status, bool) { return copyStatus(done) })
	err = backup.Fetch(ctx, target, manifest, data.Staging(), done)
	err = adviseOnFull(err, "No store was replaced. Free some space and run the same command again: it uses what was read")
	shown.end()
	if errors.Is(err, backup.ErrDamaged) {
		err = fmt.Errorf("%w. No store was replaced (want --backup NAME of one without that file, or --network of another network; see ashlar restore --list)", err)
	}
	if err == nil {
		err = data.Replace(names)
	}
	if err == nil {
		slog.Info("restored", "backup_of", manifest.Made, "stores", strings.Join(names, " "), "size", readableBytes(manifest.Bytes()), "took", shown.took())
	}
	return err
}

func (r Restore) load(ctx context.Context) (backup.Target, *backup.Manifest, error) {
	target, err := openTarget(r.From)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := backup.Load(ctx, target, r.Backup)
	if errors.Is(err, backup.ErrDamaged) {
		err = fmt.Errorf("%w (want --backup NAME of another one; see ashlar restore --list)", err)
	}
	if err != nil || len(r.Networks) == 0 && !r.Accounts {
		return target, manifest, err
	}
	var names []string
	if r.Accounts {
		names = append(names, store.AccountsName)
	}
	for _, network := range r.Networks {
		names = append(names, store.NetworkStore(network))
	}
	manifest, err = manifest.Only(names)
	return target, manifest, err
}

// checkComplete rejects a backup that lacks stores or has only some of them, unless it was named.
func (r Restore) checkComplete(ctx context.Context, t backup.Target, m *backup.Manifest) error {
	if !m.Partial && len(m.Lacks) == 0 {
		return nil
	}
	if r.Backup == "" {
		whole, err := backup.Whole(ctx, t)
		if err != nil {
			return err
		}
		if whole == "" {
			whole = "no backup here has all stores"
		} else {
			whole = "the newest that has all stores is " + whole
		}
		if m.Partial {
			return fmt.Errorf("the newest backup was made with --network, so it has no accounts and may lack networks (want --backup NAME or --network; %s; see ashlar restore --list)", whole)
		}
		return fmt.Errorf("the newest backup is not complete: it lacks %s (want --backup NAME, which restores what a backup has, or --network; %s; see ashlar restore --list)", strings.Join(m.Lacks, ", "), whole)
	}
	if len(m.Lacks) == 0 {
		return nil
	}
	slog.Warn("the backup is not complete", "backup_of", m.Made, "lacks", strings.Join(m.Lacks, ", "))
	return nil
}

// Check reads all contents of a backup, compares their hashes, and changes nothing. A backup that lacks stores is an error.
func (r Restore) Check(ctx context.Context, bar *os.File) error {
	target, manifest, err := r.load(ctx)
	if err != nil {
		return err
	}
	done := new(backup.Progress)
	shown := newProgress(bar, "checking", func() (status, bool) { return copyStatus(done) })
	err = backup.Check(ctx, target, manifest, done)
	shown.end()
	if errors.Is(err, backup.ErrDamaged) {
		err = fmt.Errorf("%w. Remove that file from %s, if it is there, and make another backup, which stores it again if the data directory still has it", err, target)
	}
	if err == nil && len(manifest.Lacks) > 0 {
		err = fmt.Errorf("the backup of %s is not complete: it lacks %s; what it has is sound", manifest.Made.Format(time.RFC3339), strings.Join(manifest.Lacks, ", "))
	}
	if err == nil {
		var names []string
		for _, s := range manifest.Stores {
			names = append(names, s.Name)
		}
		slog.Info("backup is sound", "backup_of", manifest.Made, "checked", strings.Join(names, " "), "size", readableBytes(manifest.Bytes()), "took", shown.took())
	}
	return err
}

// List writes a table of the backups, oldest first. Damaged ones are named by the error.
func (r Restore) List(ctx context.Context, out io.Writer) error {
	target, err := openTarget(r.From)
	if err != nil {
		return err
	}
	names, err := backup.Names(ctx, target)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return backup.None(target)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var damaged []error
	fmt.Fprintln(table, "MADE\tSIZE\tSTORES\tBACKUP")
	for _, name := range names {
		m, err := backup.Load(ctx, target, name)
		if errors.Is(err, backup.ErrDamaged) { // the others can be restored
			damaged = append(damaged, err)
			continue
		}
		if err != nil {
			return err
		}
		var stores []string
		for _, s := range m.Stores {
			stores = append(stores, s.Name)
		}
		for _, name := range m.Lacks {
			stores = append(stores, "(lacks "+name+")")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Made.Format(time.DateTime), readableBytes(m.Bytes()), strings.Join(stores, " "), name)
	}
	return errors.Join(table.Flush(), errors.Join(damaged...))
}
