// Package clone copies a store row by row into an empty store, which may be of another
// engine.
//
// Rows are written first and pointers last, so a copy that was interrupted has no pointer
// but its own, in which it records how far it is. Started again, it goes on from there. At
// the end it reads the whole copy back, and compares number and checksum of the rows of each
// table with what it read from the original.
package clone

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ashlar/kv"
)

// Pointer names the pointer of a copy that says of what it is a copy, and how far it is.
// docs/format.md draws it. It is not copied.
const Pointer = "copy"

var (
	// ErrChanged is returned if the original has changed since the copy was begun. The copy
	// is useless: discard it, and begin a new one.
	ErrChanged = errors.New("the original has changed while it was copied")
	// ErrDiffers is returned if the copy does not have the rows of the original.
	ErrDiffers = errors.New("the copy differs from the original")
)

// Options say what is copied.
type Options struct {
	Tables []*kv.Table // all tables that may have rows
	// Keep selects the rows to copy; nil: all.
	Keep     func(t *kv.Table, sort uint64) bool
	Progress *Progress // may be nil
}

// state is the value of Pointer.
type state struct {
	Origin   string            `json:"origin"` // see origin
	Complete bool              `json:"complete"`
	Tables   map[string]*table `json:"tables"`
}

// table is the state of a table.
type table struct {
	After *[]byte `json:"after,omitempty"` // the last partition that was copied; nil: none
	Rows  uint64  `json:"rows"`
	Sum   sum     `json:"sum"`
	Done  bool    `json:"done"`
}

// Complete reports whether a store is a complete copy of another as that is now.
func Complete(ctx context.Context, original, store kv.Store) (bool, error) {
	pointers, err := original.Pointers(ctx)
	if err != nil {
		return false, err
	}
	found, err := read(ctx, store)
	return err == nil && found != nil && found.Complete && found.Origin == origin(pointers), err
}

// Run copies from into to, or completes a copy that was interrupted. It returns the number of
// rows of the copy. No other process may write to either.
func Run(ctx context.Context, from, to kv.Store, o Options) (rows uint64, err error) {
	pointers, err := from.Pointers(ctx)
	if err != nil {
		return 0, err
	}
	now, err := read(ctx, to)
	if err == nil && now == nil {
		now, err = begin(ctx, to, origin(pointers))
	}
	if err != nil {
		return 0, err
	}
	if now.Origin != origin(pointers) {
		return 0, ErrChanged
	}
	c := &copier{Options: o, from: from, to: to, state: now}
	if err := c.copyTables(ctx); err != nil {
		return 0, err
	}
	if err := c.verify(ctx); err != nil {
		return 0, err
	}
	after, err := from.Pointers(ctx)
	if err != nil {
		return 0, err
	}
	if now.Origin != origin(after) {
		return 0, ErrChanged
	}
	for _, t := range now.Tables {
		rows += t.Rows
	}
	return rows, c.complete(ctx, pointers)
}

// origin identifies the contents of a store by its pointers, which change with its rows.
func origin(pointers map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(pointers)) {
		if name == Pointer {
			continue
		}
		for _, part := range [][]byte{[]byte(name), pointers[name]} {
			_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // never fails
			_, _ = h.Write(part)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// begin returns the state of a new copy. A store that holds something else is refused.
func begin(ctx context.Context, to kv.Store, origin string) (*state, error) {
	others, err := to.Pointers(ctx)
	if err == nil && len(others) > 0 {
		err = errors.New("it holds something else than a copy (want an empty store)")
	}
	return &state{Origin: origin, Tables: map[string]*table{}}, err
}

// read returns the state in a copy, nil if it has none.
func read(ctx context.Context, store kv.Store) (*state, error) {
	value, err := store.Pointer(ctx, Pointer)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := new(state)
	if err := json.Unmarshal(value, found); err != nil {
		return nil, fmt.Errorf("pointer %s: %w", Pointer, err)
	}
	if found.Tables == nil {
		found.Tables = map[string]*table{}
	}
	return found, nil
}

// mark adds the state to a batch.
func (s *state) mark(b kv.Batch) error {
	text, err := json.Marshal(s)
	if err == nil {
		b.SetPointer(Pointer, text)
	}
	return err
}

// complete sets the pointers, which makes the copy one that can be served.
func (c *copier) complete(ctx context.Context, pointers map[string][]byte) error {
	b := c.to.NewBatch()
	for name, value := range pointers {
		if name != Pointer {
			b.SetPointer(name, value)
		}
	}
	c.state.Complete = true
	if err := c.state.mark(b); err != nil {
		return err
	}
	if err := c.to.Write(ctx, b); err != nil {
		return err
	}
	return c.to.Sync(ctx)
}

// verify compares the rows of the copy with those that were read.
func (c *copier) verify(ctx context.Context) error {
	for _, t := range c.Tables {
		c.Progress.begin("verifying", t.Name)
		var got table
		for row, err := range c.to.Walk(ctx, t, 0) {
			if err != nil {
				return err
			}
			got.Rows++
			got.Sum.add(t, row.Partition, row.Sort, row.Value)
			c.Progress.add(row.Walked, 1, uint64(len(row.Partition)+len(row.Value)))
		}
		if want := c.state.Tables[t.Name]; got.Rows != want.Rows || got.Sum != want.Sum {
			return fmt.Errorf("%w: table %s has %d rows with checksum %s, expected %d with %s", ErrDiffers, t.Name, got.Rows, got.Sum, want.Rows, want.Sum)
		}
	}
	return nil
}
