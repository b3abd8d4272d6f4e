package pebble

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

func TestComparer(t *testing.T) {
	var prefixes, suffixes [][]byte
	for _, p := range []string{"", "a", "a\x00", "a\x00\x09", "aa", "\xff", "\xff\xff", "\x09", strings.Repeat("\xff", 9)} {
		prefixes = append(prefixes, appendPrefix(nil, 1, []byte(p)), appendPrefix(nil, 0xff, []byte(p)))
	}
	for _, sort := range []uint64{0, 1, 9, 255, 256, math.MaxUint64 - 9, math.MaxUint64} {
		suffixes = append(suffixes, appendSuffix(nil, kv.List, sort))
	}
	if err := lsm.CheckComparer(newComparer(), prefixes, suffixes); err != nil {
		t.Error(err)
	}
}

// randomKey makes keys from few bytes, so that they often share beginnings.
func randomKey(rng *rand.Rand) []byte {
	partition := make([]byte, rng.IntN(12))
	for i := range partition {
		partition[i] = []byte{0, 1, 9, 'a', 0xfe, 0xff}[rng.IntN(6)]
	}
	key := appendPrefix(nil, []byte{1, 2, 0xff}[rng.IntN(3)], partition)
	if rng.IntN(4) > 0 {
		key = appendSuffix(key, kv.Versions, uint64(rng.IntN(3))-1)
	}
	return key
}

// TestComparerShortKeys checks what Pebble asks of the keys that it makes up for
// its indexes.
func TestComparerShortKeys(t *testing.T) {
	c := newComparer()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		a, b := randomKey(rng), randomKey(rng)
		if c.Compare(a, b) > 0 {
			a, b = b, a
		}
		if x, y := c.AbbreviatedKey(a), c.AbbreviatedKey(b); x > y {
			t.Fatalf("AbbreviatedKey: %x gives %x, %x gives %x", a, x, b, y)
		}
		s := c.Successor([]byte("dst"), a)[3:]
		if c.Compare(a, s) > 0 || validateKey(s) != nil {
			t.Fatalf("Successor(%x) = %x", a, s)
		}
		p := a[:c.Split(a)]
		next := c.ImmediateSuccessor(nil, p)
		if c.Compare(p, next) >= 0 || c.Split(next) != len(next) {
			t.Fatalf("ImmediateSuccessor(%x) = %x", p, next)
		}
		if bp := b[:c.Split(b)]; c.Compare(p, bp) < 0 && c.Compare(bp, next) < 0 {
			t.Fatalf("ImmediateSuccessor(%x) = %x, but %x lies between", p, next, bp)
		}
		if c.Compare(a, b) == 0 {
			continue
		}
		k := c.Separator([]byte("dst"), a, b)[3:]
		if c.Compare(a, k) > 0 || c.Compare(k, b) >= 0 || validateKey(k) != nil {
			t.Fatalf("Separator(%x, %x) = %x", a, b, k)
		}
	}
	if s := c.Successor(nil, nil); validateKey(s) != nil {
		t.Errorf("Successor of no key: %x", s)
	}
}

func TestKeyOrder(t *testing.T) {
	versions := &kv.Table{ID: 1, Name: "versions", Kind: kv.Versions}
	list := &kv.Table{ID: 2, Name: "list", Kind: kv.List}
	ascending := [][]byte{
		appendPointerKey(nil, "finalized"),
		appendPointerKey(nil, "head"),
		appendKey(nil, versions, []byte("a"), math.MaxUint64),
		appendKey(nil, versions, []byte("a"), 1),
		appendKey(nil, versions, []byte("a"), 0),
		appendKey(nil, versions, []byte("a\x00"), 7),
		appendKey(nil, versions, []byte("ab"), 7),
		appendKey(nil, list, nil, 0),
		appendKey(nil, list, []byte("a"), 0),
		appendKey(nil, list, []byte("a"), 1),
		appendKey(nil, list, []byte("a"), math.MaxUint64),
	}
	for i := 1; i < len(ascending); i++ {
		if compare(ascending[i-1], ascending[i]) >= 0 {
			t.Errorf("%x does not come before %x", ascending[i-1], ascending[i])
		}
	}
}

func TestKeyParts(t *testing.T) {
	for _, kind := range []kv.Kind{kv.Versions, kv.List} {
		for _, p := range []string{"", "a", "\x00\x09", strings.Repeat("x", kv.MaxPartition)} {
			for _, sort := range []uint64{0, 1, math.MaxUint64} {
				table := &kv.Table{ID: 7, Name: "t", Kind: kind}
				key := appendKey([]byte{}, table, []byte(p), sort)
				if got := sortOf(kind, key); got != sort {
					t.Errorf("sort key of %x: got %d, expected %d", key, got, sort)
				}
				if got := partitionOf(key); !bytes.Equal(got, []byte(p)) {
					t.Errorf("partition of %x: got %x, expected %x", key, got, p)
				}
				if err := validateKey(key); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestTablesRefused(t *testing.T) {
	for _, table := range []*kv.Table{
		nil,
		{ID: pointerTable, Name: "zero", Kind: kv.List},
		{ID: 1, Name: "no kind"},
		{ID: 1, Name: "wrong kind", Kind: 3},
	} {
		t.Run(fmt.Sprint(table), func(t *testing.T) {
			if err := checkTable(table); err == nil {
				t.Error("no error")
			}
		})
	}
}
