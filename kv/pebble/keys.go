package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

// A stored key is a prefix, which names the partition, and a suffix, which
// names the row in it:
//
//	+----------+---------------+------+ +-----------------+------+
//	| table ID | partition     | 0x00 | | sort, 8 bytes   | 0x09 |
//	+----------+---------------+------+ +-----------------+------+
//	  1 byte     0..256 bytes    end      big endian        length of the suffix
//
// The sort key is stored inverted (^sort) in Versions tables, so that the newest
// row comes first and looking for "at or below" goes forward, which is the
// direction in which bloom filters help. A pointer is a prefix alone, under
// table ID 0, with its name in the partition's place.
//
// The last byte tells a bare prefix (0x00) from a full key (0x09), which Pebble
// needs: it compares and splits prefixes on their own too. Keys are ordered by
// prefix first, bytewise, and by suffix where prefixes are equal, so partitions
// never mix, whatever bytes are in them.
const (
	prefixEnd    = 0x00
	suffixLen    = 9
	pointerTable = 0x00
)

// pointers is the pseudo-table of pointers.
var pointers = &kv.Table{ID: pointerTable, Name: "pointers", Kind: kv.List}

// appendPrefix appends the prefix of a partition to dst.
func appendPrefix(dst []byte, table byte, partition []byte) []byte {
	dst = append(dst, table)
	dst = append(dst, partition...)
	return append(dst, prefixEnd)
}

// appendKey appends the key of a row to dst.
func appendKey(dst []byte, t *kv.Table, partition []byte, sort uint64) []byte {
	dst = appendPrefix(dst, t.ID, partition)
	return appendSuffix(dst, t.Kind, sort)
}

func appendSuffix(dst []byte, kind kv.Kind, sort uint64) []byte {
	if kind == kv.Versions {
		sort = ^sort
	}
	dst = binary.BigEndian.AppendUint64(dst, sort)
	return append(dst, suffixLen)
}

// appendPointerKey appends the key of a pointer to dst.
func appendPointerKey(dst []byte, name string) []byte {
	dst = append(dst, pointerTable)
	dst = append(dst, name...)
	return append(dst, prefixEnd)
}

// sortOf is the sort key in a row's key.
func sortOf(kind kv.Kind, key []byte) uint64 {
	sort := binary.BigEndian.Uint64(key[len(key)-suffixLen:])
	if kind == kv.Versions {
		return ^sort
	}
	return sort
}

// partitionOf is the partition in a row's key.
func partitionOf(key []byte) []byte { return key[1 : len(key)-suffixLen-1] }

// checkTable returns an error for a table whose rows could be confused with others.
func checkTable(t *kv.Table) error {
	switch {
	case t == nil:
		return fmt.Errorf("kv/pebble: no table given")
	case t.ID == pointerTable:
		return fmt.Errorf("kv/pebble: table %q has ID 0, which is reserved for pointers", t.Name)
	case t.Kind != kv.Versions && t.Kind != kv.List:
		return fmt.Errorf("kv/pebble: table %q has kind %d, expected Versions or List", t.Name, t.Kind)
	}
	return nil
}

// checkRow returns an error for a row that appendKey cannot encode.
func checkRow(t *kv.Table, partition []byte) error {
	if err := checkTable(t); err != nil {
		return err
	}
	if len(partition) > kv.MaxPartition {
		return fmt.Errorf("kv/pebble: partition of %d bytes in table %q (want at most %d)", len(partition), t.Name, kv.MaxPartition)
	}
	return nil
}

func checkPointer(name string) error {
	if len(name) == 0 || len(name) > kv.MaxPartition {
		return fmt.Errorf("kv/pebble: pointer name of %d bytes, expected 1 to %d", len(name), kv.MaxPartition)
	}
	return nil
}

// comparerName is written into every store and must change with the order of keys.
const comparerName = "ashlar.v1"

// newComparer tells Pebble how keys are ordered and where a prefix ends.
func newComparer() *lsm.Comparer {
	return &lsm.Comparer{
		Name:                 comparerName,
		Split:                split,
		Compare:              compare,
		Equal:                bytes.Equal,
		ComparePointSuffixes: bytes.Compare,
		CompareRangeSuffixes: bytes.Compare,
		AbbreviatedKey:       abbreviatedKey,
		Separator:            separator,
		Successor:            successor,
		ImmediateSuccessor:   immediateSuccessor,
		ValidateKey:          validateKey,
	}
}

// split is the length of key's prefix.
func split(key []byte) int {
	n := len(key)
	if n >= suffixLen && key[n-1] == suffixLen {
		return n - suffixLen
	}
	return n
}

func compare(a, b []byte) int {
	an, bn := split(a), split(b)
	if c := bytes.Compare(a[:an], b[:bn]); c != 0 {
		return c
	}
	return bytes.Compare(a[an:], b[bn:])
}

// abbreviatedKey is the first eight bytes of the prefix, as a number.
func abbreviatedKey(key []byte) uint64 {
	key = key[:split(key)]
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var first [8]byte
	copy(first[:], key)
	return binary.BigEndian.Uint64(first[:])
}

// separator appends a short key k with a <= k < b: a bare prefix where one fits
// between a and b, otherwise a itself.
func separator(dst, a, b []byte) []byte {
	ap, bp := a[:split(a)], b[:split(b)]
	if len(ap) < 2 || len(bp) < 2 || bytes.Equal(ap, bp) {
		return append(dst, a...)
	}
	ap, bp = ap[:len(ap)-1], bp[:len(bp)-1]
	start := len(dst)
	dst = lsm.DefaultComparer.Separator(dst, ap, bp)
	if bytes.Equal(dst[start:], ap) {
		return append(dst[:start], a...)
	}
	return append(dst, prefixEnd)
}

// successor appends a short key at or above a.
func successor(dst, a []byte) []byte {
	ap := a[:split(a)]
	if len(a) == 0 {
		return append(dst, prefixEnd)
	}
	if len(ap) < 2 {
		return append(dst, a...)
	}
	ap = ap[:len(ap)-1]
	start := len(dst)
	dst = lsm.DefaultComparer.Successor(dst, ap)
	if bytes.Equal(dst[start:], ap) {
		return append(dst[:start], a...)
	}
	return append(dst, prefixEnd)
}

// immediateSuccessor appends the least prefix above prefix.
func immediateSuccessor(dst, prefix []byte) []byte {
	return append(append(dst, prefix...), prefixEnd)
}

func validateKey(key []byte) error {
	if n := split(key); n == 0 || key[n-1] != prefixEnd {
		return fmt.Errorf("kv/pebble: key %x has no end of its partition", key)
	}
	return nil
}
