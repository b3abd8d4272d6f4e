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

// contents summarizes a store: the number of rows and their hash for each table, and some pointers.
type contents struct {
	tables   map[string]table
	pointers map[string]string
}

type table struct {
	rows int
	hash [sha256.Size]byte
}

// contentsOf reads all rows and pointers of a network's store.
func contentsOf(ctx context.Context, store kv.Store) (contents, error) {
	c := contents{tables: make(map[string]table), pointers: make(map[string]string)}
	for _, t := range archive.Tables() {
		hashed, err := hashRows(ctx, store, t)
		if err != nil {
			return c, err
		}
		c.tables[t.Name] = hashed
	}
	for _, name := range []string{"format", "settled", "genesis"} { // which every network has
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
	for row, err := range store.Walk(ctx, t, 0) {
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

// rows returns the number of rows in all tables.
func (c contents) rows() (sum int) {
	for _, t := range c.tables {
		sum += t.rows
	}
	return sum
}

// differ returns an error that lists the differences from other contents.
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
	return fmt.Errorf("the contents differ%s", text.String())
}
