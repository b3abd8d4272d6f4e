package rowcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/kv"
)

// openLater opens the stores, which may be those of an earlier process. If the disk is full, they are opened later: rows
// are kept in memory only until then, so everything is answered.
func (d *disk) openLater(ctx context.Context) error {
	err := d.open(ctx)
	if err == nil {
		return nil
	}
	err = errors.Join(fmt.Errorf("cache of rows in %s: %w", d.o.Dir, err), d.closeStores())
	if !errors.Is(err, kv.ErrFull) && !kv.IsFull(err) {
		return err
	}
	d.o.Logger.Warn("rows are not kept on disk, because it is full; those that are not in memory are read from the store until there is space", "dir", d.o.Dir, "error", err)
	d.tried = time.Now()
	return nil
}

// ready reports whether rows can be written. It tries to open stores that could not be opened; the goroutine that writes calls
// it.
func (d *disk) ready(ctx context.Context) bool {
	if d.younger != nil {
		return true
	}
	if time.Since(d.tried) < d.o.Retry {
		return false
	}
	if err := d.open(ctx); err != nil {
		d.report(errors.Join(err, d.closeStores()))
		d.tried = time.Now()
		return false
	}
	d.o.Logger.Info("rows are kept on disk again", "dir", d.o.Dir)
	return true
}

// accepts reports whether rows are kept: the stores are open and take writes.
func (d *disk) accepts() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.younger != nil && d.younger.Stats().Refused == nil
}
