package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/kv"
)

// inStores has work change a network in the stores of a data directory or a configuration, which a running server does not
// serve meanwhile if pause says so.
func inStores(ctx context.Context, network, data, config string, pause bool, work func(store.Stores) error) (err error) {
	stores, c, err := openStoresOf(ctx, network, data, config, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	return duringPause(ctx, c, network, pause, func() error { return work(stores) })
}

// acceptIncomplete refuses a store that this version cannot read, before it is opened for writing. It accepts
// one that a command must complete, as the command may be this one.
func acceptIncomplete(ctx context.Context, f family.Family, r kv.Reader) error {
	if err := f.Accept(ctx, r); !rows.Incomplete(err) {
		return err
	}
	return nil
}

// change opens a stored network that accept accepts, has work change its settled rows, and
// shows the progress on bar after the word doing.
func change(data store.Stores, network string, accept func(kv.Reader) error, doing string, bar *os.File,
	work func(kv.Store, *audit.Progress) error) (err error) {
	opened, err := data.OpenNetwork(network, kv.Options{CacheBytes: verifyCache, Existing: true, Accept: accept, Tables: app.Families().Tables()})
	if errors.Is(err, kv.ErrNotFound) {
		err = family.ErrNoBlocks
	}
	if err != nil {
		return err
	}
	defer func() { err = adviseOnStore(closeAfter(err, opened), "", "it continues") }()
	progress := new(audit.Progress)
	shown := newProgress(bar, doing, func() (status, bool) { return verifyStatus(progress) })
	defer shown.end()
	return work(opened, progress)
}

// closeAfter closes a store after work on it that ended with err, and returns both errors. That of closing a store which
// takes no writes repeats the first one, and is left out.
func closeAfter(err error, s kv.Store) error {
	closing := s.Close()
	if errors.Is(err, kv.ErrFailed) || errors.Is(err, kv.ErrFull) {
		return err
	}
	return errors.Join(err, closing)
}

// adviseOnStore adds to the error of a store that could not be written what is kept and what to do. again says what the
// same command does then.
func adviseOnStore(err error, kept, again string) error {
	var file *fs.PathError
	switch {
	case errors.Is(err, kv.ErrFull) && errors.As(err, &file):
		return fmt.Errorf("%w: %s cannot be written (%w). %sFree some space and run the same command again: %s", kv.ErrFull, file.Path, file.Err, kept, again)
	case errors.Is(err, kv.ErrFailed):
		return fmt.Errorf("%w. %sRepair the disk and run the same command again: %s", err, kept, again)
	}
	return err
}
