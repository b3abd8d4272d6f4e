package ingest

import (
	"bytes"
	"hash/maphash"

	"ashlar/kv/packed"
)

// generations keeps the latest values of things, up to a number of bytes. Values of blocks that
// are not settled are never evicted; of the others, those that were not used for a while are.
// There are two generations: a value that is used is copied to the young one, and when that is
// full, the old one is dropped and the young one takes its place. If both have a value, that of the
// young one counts. It is not safe for concurrent use.
type generations struct {
	seed       maphash.Seed
	young, old packed.Rows // by block that wrote the value; 0 if it was read from the archive
	settled    uint64
	aged       uint64 // how many times the generations have aged
}

// newGenerations returns generations that take about the given bytes together, and more where more
// is unsettled.
func newGenerations(bytes int64) generations {
	return generations{seed: maphash.MakeSeed(), young: packed.Within(bytes / 2), old: packed.Within(bytes / 2)}
}

// get returns a value. It is valid until the next call of any method.
func (g *generations) get(key []byte) ([]byte, bool) {
	hash := maphash.Bytes(g.seed, key)
	if row := g.young.Find(hash, key); row.Exists() {
		return row.Value(), true
	}
	row := g.old.Find(hash, key)
	if !row.Exists() {
		return nil, false
	}
	value := row.Value()
	if !g.young.Put(hash, key, row.Since(), value) {
		value = bytes.Clone(value) // its generation is dropped
		g.putAged(key, value, row.Since())
	}
	return value, true
}

// set notes the value that a block wrote.
func (g *generations) set(key, value []byte, block uint64) {
	hash := maphash.Bytes(g.seed, key)
	if !g.young.Put(hash, key, block, value) {
		g.putAged(key, value, block)
	}
}

// remember notes a value that was read from the archive, unless a block may have written another
// since it was looked for here: that one is here, or was evicted, and the generations aged twice
// before it was. missed is aged as it was at the look-up.
func (g *generations) remember(key, value []byte, missed uint64) {
	if _, ok := g.get(key); !ok && g.aged < missed+2 {
		g.set(key, value, 0)
	}
}

// putAged makes the young generation the old one, and puts a value into the new young one. What is
// not settled stays young.
func (g *generations) putAged(key, value []byte, block uint64) {
	type entry struct {
		key, value []byte
		block      uint64
	}
	stay := []entry{{bytes.Clone(key), bytes.Clone(value), block}}
	need := packed.Share(key, value)
	for _, from := range []*packed.Rows{&g.old, &g.young} {
		for row := range from.All() {
			if row.Since() > g.settled {
				stay = append(stay, entry{bytes.Clone(row.Key()), bytes.Clone(row.Value()), row.Since()})
				need += packed.Share(row.Key(), row.Value())
			}
		}
	}
	g.young, g.old = g.old, g.young
	g.aged++
	// Where more is unsettled than half of a generation holds, the next one is larger, so that not
	// every put ages it again.
	if g.young.Limit() < 2*need {
		g.young = packed.Within(2 * need)
	} else {
		g.young.Clear()
	}
	for _, e := range append(stay[1:], stay[0]) { // in the order in which they were written
		g.young.Put(maphash.Bytes(g.seed, e.key), e.key, e.block, e.value)
	}
}

// settle notes that what blocks up to number wrote may go.
func (g *generations) settle(number uint64) { g.settled = number }
