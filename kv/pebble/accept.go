package pebble

import (
	"errors"
	"fmt"
	"io/fs"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

// checkExists returns kv.ErrNotFound if the store must exist and does not.
func checkExists(o Options) error {
	if !o.Existing && !o.ReadOnly {
		return nil
	}
	found, err := lsm.Peek(o.Path, o.FS)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !found.Exists {
		return kv.ErrNotFound
	}
	return err
}

// accept calls o.Accept with the store in the directory, if there is one. The store is
// opened for that without changing a file, and closed again.
func accept(o Options, lock *directoryLock) error {
	if o.Accept == nil {
		return nil
	}
	found, err := lsm.Peek(o.Path, o.FS)
	if err != nil || !found.Exists {
		return err
	}
	g := newGuard(o.Logger)
	config := configure(o, g)
	config.Lock, config.FS, config.ReadOnly = lock.Lock, o.FS, true
	s, err := openDatabase(o, config, g)
	if err != nil {
		return err
	}
	return errors.Join(o.Accept(s), s.pool.close(), s.db.Close())
}

// openDatabase opens the database in a locked directory, and makes the part of the
// store that serves reads.
func openDatabase(o Options, config *lsm.Options, g *guard) (*Store, error) {
	var db *lsm.DB
	err := g.run(func() (err error) {
		db, err = lsm.Open(o.Path, config)
		return err
	})
	if err != nil {
		if _, full := g.problem(); full != nil {
			g.fail(full)
		}
		// What waits for space must not go on when this has returned.
		g.stop()
		if kv.IsDamage(nameFull(err)) { // Pebble's errors do not tell damage from a later format
			err = fmt.Errorf("%w; if the store's files are damaged, check the disk and restore a backup", err)
		}
		return nil, err
	}
	g.opened.Store(true)
	pool, err := newPool(db, g)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, pool: pool, guard: g, bulk: o.BulkLoad}, nil
}
