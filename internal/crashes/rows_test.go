package crashes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/kv"
)

// contents is what a store holds: of each table how many rows there are and the
// hash of all of them, and every pointer.
type contents struct {
	tables   map[string]table
	pointers map[string]string
}

type table struct {
	rows int
	hash [sha256.Size]byte
}

// contentsOf reads every row of a network's store, and its pointers.
func contentsOf(ctx context.Context, store kv.Store) (contents, error) {
	c := contents{tables: make(map[string]table), pointers: make(map[string]string)}
	for _, t := range archive.Tables() {
		hashed, err := hashRows(ctx, store, t)
		if err != nil {
			return c, err
		}
		c.tables[t.Name] = hashed
	}
	for _, name := range archive.Pointers() {
		value, err := store.Pointer(ctx, name)
		if err != nil {
			return c, fmt.Errorf("pointer %s: %w", name, err)
		}
		c.pointers[name] = string(value)
	}
	return c, nil
}

func hashRows(ctx context.Context, store kv.Store, t *kv.Table) (table, error) {
	var all table
	hash := sha256.New()
	var length [4]byte
	for row, err := range store.Walk(ctx, t) {
		if err != nil {
			return all, err
		}
		all.rows++
		for _, part := range [][]byte{row.Partition, binary.BigEndian.AppendUint64(nil, row.Sort), row.Value} {
			binary.BigEndian.PutUint32(length[:], uint32(len(part)))
			hash.Write(length[:])
			hash.Write(part)
		}
	}
	hash.Sum(all.hash[:0])
	return all, nil
}

// rows is how many there are in all tables.
func (c contents) rows() (sum int) {
	for _, t := range c.tables {
		sum += t.rows
	}
	return sum
}

// differ says in what other contents are not the same.
func (c contents) differ(other contents) error {
	var text bytes.Buffer
	for name, t := range c.tables {
		if o := other.tables[name]; o != t {
			fmt.Fprintf(&text, "; table %s has %d rows with the hash %x, expected %d with %x", name, o.rows, o.hash[:4], t.rows, t.hash[:4])
		}
	}
	for name, value := range c.pointers {
		if o := other.pointers[name]; o != value {
			fmt.Fprintf(&text, "; pointer %s is %x, expected %x", name, o, value)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return fmt.Errorf("what is stored differs%s", text.String())
}
