package postings

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const lastBlock = 499

// index is a store of postings, with a copy that can be searched linearly.
type index struct {
	store  kv.Store
	table  *kv.Table
	blocks [][][]Term // terms by block and position
}

// newIndex creates blocks of up to ten positions with up to four terms each. Some terms are rare,
// some blocks are empty.
func newIndex(t *testing.T, random *rand.Rand) *index {
	store, err := pebble.Open(pebble.Options{Path: "postings", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	x := &index{store: store, table: &kv.Table{ID: 1, Name: "postings", Kind: kv.List}}
	batch := store.NewBatch()
	for number := range uint64(lastBlock + 1) {
		block, terms := NewBlock[Term](), make([][]Term, random.IntN(11))
		for position := range terms {
			for kind := range byte(random.IntN(5)) {
				term := randomTerm(random, kind)
				terms[position] = append(terms[position], term)
				block.Add(term, uint64(position))
			}
		}
		for term, row := range block.Rows() {
			batch.Put(x.table, term[:], number, row)
		}
		x.blocks = append(x.blocks, terms)
	}
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return x
}

// randomTerm returns the term of the value 0 with probability 1/2, of 1 with 1/4 and so on.
func randomTerm(random *rand.Rand, kind byte) Term {
	value := byte(0)
	for value < 12 && random.IntN(2) == 0 {
		value++
	}
	return TermOf(kind, []byte{value})
}

func (x *index) scan(t *testing.T) Scan[Term] { return x.scanOf(t, x.store) }

func (x *index) scanOf(t *testing.T, rows kv.Reader) Scan[Term] {
	return func(term Term, from, to uint64) Postings {
		return Postings{rows.Scan(t.Context(), x.table, term[:], from, to)}
	}
}

// matching returns the positions in a block that have a term of every set.
func (x *index) matching(block uint64, sets [][]Term) (found []uint32) {
	for position, terms := range x.blocks[block] {
		has := func(set []Term) bool {
			return slices.ContainsFunc(set, func(term Term) bool { return slices.Contains(terms, term) })
		}
		if !slices.ContainsFunc(sets, func(set []Term) bool { return !has(set) }) {
			found = append(found, uint32(position))
		}
	}
	return found
}

func TestIntersectionsAreThoseOfAWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	x := newIndex(t, random)
	for range 400 {
		sets := make([][]Term, 1+random.IntN(4))
		for kind := range sets {
			for range 1 + random.IntN(2)*random.IntN(8) {
				sets[kind] = append(sets[kind], randomTerm(random, byte(kind)))
			}
		}
		from := random.Uint64N(lastBlock)
		to := from + random.Uint64N(lastBlock-from+1)
		found, err := Intersect(x.scan(t), nil, sets, from, to)
		if err != nil {
			t.Fatal(err)
		}
		next := from
		for block := from; block <= to; block++ {
			want := x.matching(block, sets)
			if len(want) == 0 || block < next {
				continue
			}
			at, got, ok, err := found.Next(next, nil)
			if err != nil || !ok || at != block || !slices.Equal(got, want) {
				t.Fatalf("from %d to %d, at %d: block %d, %v, %v, %v; want block %d, %v", from, to, next, at, got, ok, err, block, want)
			}
			next = block + 1 + random.Uint64N(2)*random.Uint64N(30)
		}
		if at, _, ok, err := found.Next(to+1, nil); ok || err != nil {
			t.Fatalf("block %d, %v behind the last", at, err)
		}
		if err := found.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Windows with too many entries are made smaller, without losing any.
func TestUnionWindows(t *testing.T) {
	x := newIndex(t, rand.New(rand.NewPCG(2, 1)))
	set := []Term{TermOf(0, []byte{0}), TermOf(0, []byte{1}), TermOf(1, []byte{2}), TermOf(0, []byte{9})}
	for _, most := range []int{1, 5, 40, 1000} {
		for _, leap := range []uint64{0, 1, 3, 90} {
			u := newUnion(x.scan(t), nil, set, 0, lastBlock)
			u.most = most
			next := uint64(0)
			for block := range uint64(lastBlock + 1) {
				want := x.matching(block, [][]Term{set})
				if len(want) == 0 || block < next {
					continue
				}
				at, ok, err := u.seek(next)
				if err != nil || !ok || at != block {
					t.Fatalf("at most %d, leaps of %d: from %d to %d, %v, %v, want %d", most, leap, next, at, ok, err, block)
				}
				if got, err := u.positions(nil); err != nil || !slices.Equal(got, want) {
					t.Fatalf("at most %d, leaps of %d: %v, %v in block %d, want %v", most, leap, got, err, at, want)
				}
				next = at + 1 + leap
			}
			if at, ok, err := u.seek(lastBlock + 1); ok || err != nil {
				t.Fatalf("at most %d: %d, %v behind the last", most, at, err)
			}
		}
	}
}

// If reading fails, earlier results are right and the error is returned.
func TestFailedReadsAreReported(t *testing.T) {
	x, cause := newIndex(t, rand.New(rand.NewPCG(3, 1))), errors.New("unreadable")
	often, seldom, never := TermOf(0, []byte{0}), TermOf(1, []byte{3}), TermOf(9, nil)
	for _, sets := range [][][]Term{
		{{often}}, {{never}}, {{often, seldom, never}}, {{often}, {seldom}}, {{never, seldom}, {often}}, {{often, never}, {seldom, TermOf(1, []byte{0})}},
	} {
		walk := func(rows kv.Reader) (blocks []uint64, err error) {
			found, err := Intersect(x.scanOf(t, rows), nil, sets, 0, lastBlock)
			ok := err == nil
			for next := uint64(0); ok; next++ {
				if next, _, ok, err = found.Next(next, nil); ok {
					blocks = append(blocks, next)
				}
			}
			return blocks, cmp.Or(err, found.Close())
		}
		all, err := walk(x.store)
		if err != nil {
			t.Fatal(err)
		}
		failures := 0
		for ; ; failures++ {
			found, err := walk(kvtest.FailAfter(x.store, failures, cause))
			if err == nil && slices.Equal(found, all) {
				break
			}
			if err != cause || len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
				t.Fatalf("%d sets, failing after %d moves: %d of %d blocks, %v", len(sets), failures, len(found), len(all), err)
			}
		}
		if failures <= len(all) {
			t.Errorf("%d sets: %d moves led to %d blocks", len(sets), failures, len(all))
		}
	}
}
