package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
	"ashlar/limit"
)

// A backup waits for the copies of an earlier one that was killed to be removed.
const (
	checkpointWait  = 10 * time.Second
	checkpointRetry = 100 * time.Millisecond
)

// checkpoint makes copies of all open stores. The networks stay open until they are
// released.
func (s *Service) checkpoint(ctx context.Context) (made []control.Checkpoint, release func() error, err error) {
	open, used := map[string]kv.Store{store.AccountsName: s.people.store}, []*limit.Users{}
	for _, n := range s.Networks() {
		if n.store != nil && n.users.Enter() {
			open[store.NetworkStore(n.Name)] = n.store
			used = append(used, &n.users)
		}
	}
	leave := func() {
		for _, u := range used {
			u.Leave()
		}
	}
	made, remove, err := checkpointOnce(ctx, open)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return made, func() error { defer leave(); return remove() }, nil
}

// checkpointOnce makes copies of stores once those of an earlier backup are removed.
func checkpointOnce(ctx context.Context, open map[string]kv.Store) (made []control.Checkpoint, release func() error, err error) {
	for end := time.Now().Add(checkpointWait); ; {
		made, release, err = Checkpoint(ctx, open)
		switch {
		case !errors.Is(err, kv.ErrCheckpoint):
			return made, release, err
		case time.Now().After(end):
			return nil, nil, fmt.Errorf("%w (want one at a time of `ashlar backup` and `ashlar snapshot create`)", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(checkpointRetry):
		}
	}
}

// Checkpoint makes copies of stores, by their names in backups.
func Checkpoint(ctx context.Context, stores map[string]kv.Store) (made []control.Checkpoint, release func() error, err error) {
	var releases []func() error
	release = func() (err error) {
		for _, r := range releases {
			err = errors.Join(err, r())
		}
		return err
	}
	for name, s := range stores {
		dir, done, err := checkpointOf(ctx, s)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("copy %s: %w", name, err), release())
		}
		releases = append(releases, done)
		made = append(made, control.Checkpoint{Store: name, Dir: dir})
	}
	return made, release, nil
}

// checkpointOf makes a copy of one store. The directory's path is absolute.
func checkpointOf(ctx context.Context, s kv.Store) (dir string, release func() error, err error) {
	c, ok := s.(kv.Checkpointer)
	if !ok {
		return "", nil, errors.New("the store is not on this machine: use the backups of its database")
	}
	if dir, release, err = c.Checkpoint(ctx); err != nil {
		return "", nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, errors.Join(err, release())
	}
	return dir, release, nil
}
