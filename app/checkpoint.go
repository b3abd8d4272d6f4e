package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
	"ashlar/limit"
	"ashlar/retry"
)

// A backup or a snapshot waits for the copies of an earlier one that was killed to be removed.
const (
	checkpointWait  = 10 * time.Second
	checkpointRetry = 100 * time.Millisecond
)

// checkpoint makes copies of those of the named stores that are open. The networks stay open
// until they are released.
func (s *Service) checkpoint(ctx context.Context, what control.Copying) (made []control.Checkpoint, release func() error, err error) {
	if what.For != control.ForBackup && what.For != control.ForSnapshot {
		return nil, nil, fmt.Errorf("copy stores for %q: unknown purpose (want %s or %s)", what.For, control.ForBackup, control.ForSnapshot)
	}
	open, used := make(map[string]kv.Store), []*limit.Users{}
	if slices.Contains(what.Stores, store.AccountsName) {
		open[store.AccountsName] = s.people.store
	}
	for _, n := range s.Networks() {
		name := store.NetworkStore(n.Name)
		if slices.Contains(what.Stores, name) && n.store != nil && n.users.Enter() {
			open[name] = n.store
			used = append(used, &n.users)
		}
	}
	leave := func() {
		for _, u := range used {
			u.Leave()
		}
	}
	made, remove, err := checkpointOnce(ctx, open, what.For)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return made, func() error { defer leave(); return remove() }, nil
}

// checkpointOnce makes copies of stores once those of an earlier command are removed.
func checkpointOnce(ctx context.Context, open map[string]kv.Store, purpose string) (made []control.Checkpoint, release func() error, err error) {
	for end := time.Now().Add(checkpointWait); ; {
		made, release, err = Checkpoint(ctx, open, purpose)
		switch {
		case !errors.Is(err, kv.ErrCheckpoint):
			return made, release, err
		case time.Now().After(end):
			return nil, nil, fmt.Errorf("%w (want one %s at a time)", err, purpose)
		}
		if err := retry.Sleep(ctx, checkpointRetry); err != nil {
			return nil, nil, err
		}
	}
}

// Checkpoint makes copies of stores for a purpose, by their names in backups. A store that cannot be copied, such as one
// whose disk is full, does not keep the others from it. The error is a kv.ErrCheckpoint if a store has a copy for the
// purpose already.
func Checkpoint(ctx context.Context, stores map[string]kv.Store, purpose string) (made []control.Checkpoint, release func() error, err error) {
	var releases []func() error
	release = func() (err error) {
		for _, r := range releases {
			err = errors.Join(err, r())
		}
		return err
	}
	for name, s := range stores {
		dir, done, err := checkpointOf(ctx, s, purpose)
		switch {
		case err == nil:
			releases = append(releases, done)
			made = append(made, control.Checkpoint{Store: name, Dir: dir})
		case errors.Is(err, kv.ErrCheckpoint) || ctx.Err() != nil:
			return nil, nil, errors.Join(fmt.Errorf("copy %s: %w", name, err), release())
		default:
			made = append(made, control.Checkpoint{Store: name, Failed: err.Error()})
		}
	}
	return made, release, nil
}

// checkpointOf makes a copy of one store. The directory's path is absolute.
func checkpointOf(ctx context.Context, s kv.Store, purpose string) (dir string, release func() error, err error) {
	c, ok := s.(kv.Checkpointer)
	if !ok {
		return "", nil, errors.New("the store is not on this machine: use the backups of its database")
	}
	if dir, release, err = c.Checkpoint(ctx, purpose); err != nil {
		return "", nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, errors.Join(err, release())
	}
	return dir, release, nil
}
