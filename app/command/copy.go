package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/clone"
)

// Copy is ashlar copy.
type Copy struct {
	From, To string // each a data directory or a configuration file
	Network  string // empty: all networks, and the accounts
}

// copyAttempts is how often a copy of accounts that others change meanwhile is begun.
const copyAttempts = 5

// Run copies the stores, and shows the progress on bar.
func (c Copy) Run(ctx context.Context, bar *os.File) (err error) {
	from, err := openPlace(ctx, c.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openPlace(ctx, c.To)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	names, err := c.names(ctx, from)
	if err != nil {
		return err
	}
	if from.String() == to.String() {
		return fmt.Errorf("--from and --to are the same place, %s", from)
	}
	there, err := listCopied(ctx, to)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyStore(ctx, from, to, name, slices.Contains(there, name), bar); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

// openPlace opens the stores of a data directory or of a configuration file. Whatever role
// the file has, they can be written.
func openPlace(ctx context.Context, place string) (store.Stores, error) {
	info, err := os.Stat(place)
	isFile := err == nil && info.Mode().IsRegular()
	if isFile || err != nil && (strings.HasSuffix(place, ".yaml") || strings.HasSuffix(place, ".yml")) {
		stores, _, err := openStores(ctx, "", place, false)
		return stores, err
	}
	dir := store.Dir(place)
	return dir, dir.Check()
}

// names returns the stores to copy.
func (c Copy) names(ctx context.Context, from store.Stores) ([]string, error) {
	if c.Network == "" {
		names, err := from.ListStores(ctx)
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("nothing to copy in %s", from)
		}
		return names, err
	}
	if err := checkName(c.Network); err != nil {
		return nil, err
	}
	if exists, err := from.Exists(ctx, c.Network); err != nil {
		return nil, err
	} else if !exists {
		return nil, fmt.Errorf("network %s: %w", c.Network, store.NotFound(ctx, from, c.Network))
	}
	return []string{store.NetworkStore(c.Network)}, nil
}

// listCopied lists the stores at the place to copy to, which need not exist.
func listCopied(ctx context.Context, to store.Stores) ([]string, error) {
	if dir, ok := to.(store.Dir); ok {
		if _, err := os.Stat(string(dir)); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	return to.ListStores(ctx)
}

// copyStore copies one store, unless that was done before.
func copyStore(ctx context.Context, from, to store.Stores, name string, exists bool, bar *os.File) (err error) {
	original, err := from.OpenToCopy(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	if exists {
		return checkCopied(ctx, original, to, name)
	}
	options, err := copyOptions(ctx, original, name)
	if err != nil {
		return err
	}
	shown := newProgress(bar, "copying "+name, func() (status, bool) { return cloneStatus(options.Progress) })
	defer shown.end()
	for attempt := 1; ; attempt++ {
		rows, err := copyOnce(ctx, original, to, name, options)
		if err == nil {
			shown.note("copied and verified", "store", name, "to", to, "rows", rows, "took", time.Since(shown.started).Round(time.Millisecond))
			return nil
		}
		if !errors.Is(err, clone.ErrChanged) || attempt == copyAttempts {
			return err
		}
		shown.note("the original has changed; copying it anew", "store", name)
		if err := to.Discard(ctx, name); err != nil {
			return err
		}
	}
}

// copyOnce copies a store into a new one, or completes a copy that was interrupted.
func copyOnce(ctx context.Context, original kv.Store, to store.Stores, name string, options clone.Options) (rows uint64, err error) {
	opened, err := to.OpenCopy(ctx, name, options.Tables)
	if err != nil {
		return 0, err
	}
	rows, err = clone.Run(ctx, original, opened, options)
	if err = closeAfter(err, opened); err != nil {
		return 0, adviseOnStore(err, "", "it goes on where it was")
	}
	return rows, to.Publish(ctx, name)
}

// checkCopied returns an error unless a store that exists is a copy of the original.
func checkCopied(ctx context.Context, original kv.Store, to store.Stores, name string) error {
	opened, err := to.OpenToCopy(ctx, name)
	if err != nil {
		return err
	}
	same, err := clone.Complete(ctx, original, opened)
	if err == nil && !same {
		err = fmt.Errorf("it exists in %s, and is not a copy of the original as that is now (want a place without it)", to)
	}
	if err = errors.Join(err, opened.Close()); err == nil {
		slog.Info("copied before", "store", name, "to", to)
	}
	return err
}

// copyOptions says what is copied of a store. In a network of a keyspace there may be rows
// above the settled block, of a write that was not completed; they are left out.
func copyOptions(ctx context.Context, original kv.Store, name string) (o clone.Options, err error) {
	o.Progress = new(clone.Progress)
	if name == store.AccountsName {
		o.Tables = slices.Concat(account.Tables(), usage.Tables(), session.Tables())
		return o, account.Accept(ctx, original)
	}
	f, err := app.FamilyOf(ctx, original)
	if errors.Is(err, kv.ErrNotFound) {
		err = family.ErrNoBlocks
	}
	if err == nil {
		err = f.Accept(ctx, original)
	}
	if err != nil {
		return o, err
	}
	if _, removing, err := kv.Epoch(ctx, original); err != nil || removing {
		return o, errors.Join(err, rows.ErrRewinding)
	}
	settled, any, err := rows.Settled(ctx, original)
	if err == nil && !any {
		err = family.ErrNoBlocks
	}
	o.Tables = f.Tables()
	o.Keep = func(t *kv.Table, sort uint64) bool { return t.Transient || t.BlockOf(sort) <= settled.Number }
	return o, err
}

// cloneStatus returns the progress of a copy.
func cloneStatus(p *clone.Progress) (status, bool) {
	stage, share, read, _ := p.Now()
	if stage == nil {
		return status{}, false
	}
	rate := float64(read-stage.From) / max(time.Since(stage.Begun).Seconds(), 0.001)
	return status{
		part: stage.Task + " " + stage.Table, kind: "table", since: stage.Begun, share: share,
		brief:  fmt.Sprintf("%s  %.0f rows/s", family.Counted(read, "row"), rate),
		fields: []any{"rows", read, "rows/s", int(rate)},
	}, true
}
