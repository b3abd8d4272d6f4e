package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ashlar/kv"
)

// Names lists the stores of the keyspace that begin with a prefix.
func (c *Cluster) Names(ctx context.Context) ([]string, error) {
	var names []string
	err := c.retry(ctx, c.config.readPatience, func(ctx context.Context) error {
		names = names[:0]
		rows := c.session.Query("SELECT name, id FROM " + tableStores + " WHERE part = 0").IterContext(ctx)
		var name *string
		for id := 0; rows.Scan(&name, &id); {
			if name != nil { // nil: no store yet
				names = append(names, *name)
			}
		}
		return rows.Close()
	})
	slices.Sort(names)
	return names, err
}

// id returns the number of a store, or kv.ErrNotFound.
func (c *Cluster) id(ctx context.Context, name string) (id int, err error) {
	err = c.scan(ctx, c.session.Query("SELECT id FROM "+tableStores+" WHERE part = 0 AND name = ?", name), &id)
	return id, err
}

// newID gives a store a number that no store had before. Others may do the same at once.
func (c *Cluster) newID(ctx context.Context, name string) (int, error) {
	const (
		first = "INSERT INTO " + tableStores + " (part, last) VALUES (0, 0) IF NOT EXISTS"
		next  = "UPDATE " + tableStores + " SET last = ? WHERE part = 0 IF last = ?"
		add   = "INSERT INTO " + tableStores + " (part, name, id) VALUES (0, ?, ?) IF NOT EXISTS"
	)
	if _, _, err := c.compareAndSet(ctx, c.config.readPatience, first); err != nil {
		return 0, err
	}
	for {
		var last int
		if err := c.scan(ctx, c.session.Query("SELECT last FROM "+tableStores+" WHERE part = 0 LIMIT 1").Consistency(c.serial), &last); err != nil {
			return 0, err
		}
		applied, _, err := c.compareAndSet(ctx, c.config.readPatience, next, last+1, last)
		if err != nil {
			return 0, err
		}
		if !applied {
			continue // another store got the number, or this one did, in an attempt without an answer
		}
		if _, _, err := c.compareAndSet(ctx, c.config.readPatience, add, name, last+1); err != nil {
			return 0, err
		}
		return c.id(ctx, name) // of this store as it was added first
	}
}

// Rename gives a store another name, which no store must have. It must not be open. If that
// is interrupted, the store may have both names until Rename is called again.
func (c *Cluster) Rename(ctx context.Context, from, to string) error {
	id, err := c.id(ctx, from)
	if err != nil {
		return fmt.Errorf("kv/cassandra: rename store %s: %w", from, err)
	}
	const (
		add    = "INSERT INTO " + tableStores + " (part, name, id) VALUES (0, ?, ?) IF NOT EXISTS"
		remove = "DELETE FROM " + tableStores + " WHERE part = 0 AND name = ? IF id = ?"
	)
	applied, now, err := c.compareAndSet(ctx, c.config.readPatience, add, to, id)
	if err == nil && !applied && now["id"] != id {
		err = kv.ErrConflict
	}
	if err == nil {
		_, _, err = c.compareAndSet(ctx, c.config.readPatience, remove, from, id)
	}
	if err != nil {
		return fmt.Errorf("kv/cassandra: rename store %s to %s: %w", from, to, err)
	}
	return nil
}

// Remove removes a store with all its rows. It must not be open. It reads the whole of
// each table.
func (c *Cluster) Remove(ctx context.Context, name string) error {
	s, err := c.Open(ctx, name, kv.Options{}, Options{})
	if err != nil {
		return err
	}
	names, err := c.tableNames(ctx)
	for _, table := range names {
		if ownTables[table] == "" && err == nil {
			err = s.removeRows(ctx, table)
		}
	}
	if err == nil {
		err = c.exec(ctx, c.config.readPatience, c.session.Query("DELETE FROM "+tableSplits+" WHERE store = ?", s.id))
	}
	if err == nil {
		_, _, err = c.compareAndSet(ctx, c.config.readPatience, "DELETE FROM "+tableStores+" WHERE part = 0 AND name = ? IF EXISTS", name)
	}
	if err == nil {
		// The token stays, above all that were given: nobody has the number again.
		_, _, err = c.compareAndSet(ctx, c.config.readPatience, "UPDATE "+tablePointers+" SET bytes = 0 WHERE store = ? IF fence = ?", s.id, s.token)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("remove store %s: %w", name, err)
	}
	return nil
}

// removeRows removes a store's partitions of one table.
func (s *Store) removeRows(ctx context.Context, table string) error {
	c := s.cluster
	parts := c.session.Query("SELECT DISTINCT store, p, i FROM " + table).IterContext(ctx)
	var store, i int
	var p []byte
	for parts.Scan(&store, &p, &i) {
		if store != s.id {
			continue
		}
		drop := c.session.Query("DELETE FROM "+table+" WHERE store = ? AND p = ? AND i = ?", store, p, i)
		if err := c.exec(ctx, c.config.readPatience, drop.WithTimestamp(s.clock.next())); err != nil {
			return errors.Join(err, parts.Close())
		}
	}
	return translate(parts.Close())
}
