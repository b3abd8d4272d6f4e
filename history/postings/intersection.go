package postings

import (
	"cmp"
	"math"
	"slices"
)

// Scan returns where a term occurs, in blocks from one to another.
type Scan func(term Term, from, to uint64) Postings

// group is where any term of a set occurs.
type group interface {
	// seek moves to the first block at or above one in which any does, and
	// returns its number; false after the last. It does not go back: for a block
	// below the current one it stays where it is.
	seek(block uint64) (at uint64, ok bool, err error)
	// positions appends the positions in the current block to dst,
	// in ascending order.
	positions(dst []uint32) ([]uint32, error)
	// close may be called again.
	close() error
}

// Intersection steps through the blocks in which something has a term of every
// set, by leaping: each set moves to the first block at or above where the
// others are, until they all are at one. It belongs to one goroutine and must be
// closed.
type Intersection struct {
	groups []group
	left   []uint32
	right  []uint32
}

// Intersect returns the intersection of sets of terms, in blocks from one to
// another. There is at least one set, and none is empty.
func Intersect(scan Scan, sets [][]Term, from, to uint64) (*Intersection, error) {
	x := &Intersection{groups: make([]group, 0, len(sets))}
	first := make(map[group]uint64, len(sets))
	for _, set := range sets {
		var g group
		if len(set) == 1 {
			g = &single{rows: scan(set[0], from, to)}
		} else {
			g = newUnion(scan, set, from, to)
		}
		x.groups = append(x.groups, g)
		at, ok, err := g.seek(from)
		if err != nil || !ok {
			x.Close()
			x.groups = nil // so that nothing is found
			return x, err
		}
		from, first[g] = at, at
	}
	// The group that begins last has, as far as is known now, the fewest blocks.
	slices.SortStableFunc(x.groups, func(a, b group) int { return cmp.Compare(first[b], first[a]) })
	return x, nil
}

// Next returns the first block at or above one in which something has a term of
// every set, its positions appended to dst; false when there is none. It does not go back.
func (x *Intersection) Next(block uint64, dst []uint32) (at uint64, positions []uint32, ok bool, err error) {
	if len(x.groups) == 0 {
		return 0, dst, false, nil
	}
	for ; ; block++ {
		if block, ok, err = x.align(block); !ok || err != nil {
			return 0, dst, false, err
		}
		if len(x.groups) == 1 {
			positions, err = x.groups[0].positions(dst)
			return block, positions, err == nil, err
		}
		common, err := x.common()
		if err != nil {
			return 0, dst, false, err
		}
		if len(common) > 0 {
			return block, append(dst, common...), true, nil
		}
	}
}

// align moves all groups to the first block at or above one in which all of them are.
func (x *Intersection) align(block uint64) (uint64, bool, error) {
	for i := 0; i < len(x.groups); {
		at, ok, err := x.groups[i].seek(block)
		if !ok || err != nil {
			return 0, false, err
		}
		if at > block && i > 0 {
			i = 0
		} else {
			i++
		}
		block = at
	}
	return block, true, nil
}

// common returns the positions that all groups have in the current block.
func (x *Intersection) common() (_ []uint32, err error) {
	if x.left, err = x.groups[0].positions(x.left[:0]); err != nil {
		return nil, err
	}
	for _, g := range x.groups[1:] {
		if x.right, err = g.positions(x.right[:0]); err != nil {
			return nil, err
		}
		if x.left = keepCommon(x.left, x.right); len(x.left) == 0 {
			break
		}
	}
	return x.left, nil
}

// keepCommon keeps in a what is in b too. Both ascend.
func keepCommon(a, b []uint32) []uint32 {
	kept, j := 0, 0
	for _, position := range a {
		for j < len(b) && b[j] < position {
			j++
		}
		if j == len(b) {
			break
		}
		if b[j] == position {
			a[kept] = position
			kept++
		}
	}
	return a[:kept]
}

// Close releases what is read. It may be called again.
func (x *Intersection) Close() error {
	var first error
	for _, g := range x.groups {
		if err := g.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// single is a group of one term.
type single struct {
	rows Postings
	on   bool
}

func (s *single) seek(block uint64) (uint64, bool, error) {
	if s.on && block == s.rows.Block()+1 {
		s.on = s.rows.Next()
	} else {
		s.on = s.rows.Seek(block)
	}
	if !s.on {
		return 0, false, s.rows.Close()
	}
	return s.rows.Block(), true, nil
}

func (s *single) positions(dst []uint32) ([]uint32, error) { return s.rows.Positions(dst) }
func (s *single) close() error                             { return s.rows.Close() }

const (
	leastWindow   = 8       // blocks
	firstWindow   = 64      // blocks
	sparseEntries = 4 << 10 // a window with fewer is followed by a larger one
	mostEntries   = 1 << 18 // a window with more is made smaller, unless it is one block
	maxWindow     = math.MaxUint32
)

// union is a group of many terms, of which there may be thousands. It reads one
// term after the other, for a window of blocks at a time, so that it needs one
// cursor and little memory; for each term it keeps where it goes on behind the
// window, so that a term costs nothing in windows in which it does not occur.
type union struct {
	scan  Scan
	terms []Term
	next  []uint64 // for each term, a block below which it does not occur behind the window
	to    uint64

	start, end uint64   // the window: blocks from start to below end
	width      uint64   // of the window to come
	most       int      // entries, see mostEntries
	entries    []uint64 // of the window: block less start (32 bits), position (32 bits)
	at         int      // the first entry of the current block
	decoded    []uint32
}

const exhausted = math.MaxUint64 // in union.next: the term does not occur again

func newUnion(scan Scan, terms []Term, from, to uint64) *union {
	u := &union{scan: scan, terms: terms, next: make([]uint64, len(terms)), to: to, start: from, end: from, width: firstWindow, most: mostEntries}
	for i := range u.next {
		u.next[i] = from
	}
	return u
}

func (u *union) close() error { return nil } // no cursor outlives load

func (u *union) block(entry int) uint64 { return u.start + u.entries[entry]>>32 }

func (u *union) seek(block uint64) (uint64, bool, error) {
	if block < u.end {
		least := uint64(0)
		if block > u.start {
			least = (block - u.start) << 32
		}
		skip, _ := slices.BinarySearch(u.entries[u.at:], least)
		if u.at += skip; u.at < len(u.entries) {
			return u.block(u.at), true, nil
		}
		block = u.end
	} else if block > u.end {
		// Another group leaps over what was read here: read less.
		u.width = max(leastWindow, u.width/4)
	}
	for {
		start, ok := u.upcoming(block)
		if !ok {
			u.entries, u.at = u.entries[:0], 0
			return 0, false, nil
		}
		if err := u.load(start); err != nil {
			return 0, false, err
		}
		if len(u.entries) > 0 {
			return u.block(0), true, nil
		}
		block = u.end
	}
}

// upcoming returns where a window at or above block begins at the earliest.
func (u *union) upcoming(block uint64) (uint64, bool) {
	start := uint64(exhausted)
	for _, next := range u.next {
		start = min(start, max(next, block))
	}
	return start, start <= u.to
}

// load reads the window that begins at start.
func (u *union) load(start uint64) error {
	for {
		u.start, u.at, u.entries = start, 0, u.entries[:0]
		u.end = start + min(u.width, u.to-start+1)
		full, err := u.fill()
		if err != nil {
			return err
		}
		if !full {
			break
		}
		u.width = max(1, u.width/16)
	}
	if len(u.entries) < sparseEntries {
		u.width = min(2*u.width, maxWindow)
	}
	slices.Sort(u.entries)
	u.entries = slices.Compact(u.entries) // terms may collide
	return nil
}

// fill reads all terms for the window, or returns true when that is too much.
func (u *union) fill() (full bool, err error) {
	for i, term := range u.terms {
		if u.next[i] >= u.end {
			continue
		}
		if u.next[i], full, err = u.fillTerm(term, max(u.next[i], u.start)); err != nil {
			return false, err
		}
		if full {
			for j := range u.terms[:i] { // what was read here comes again
				if u.next[j] >= u.end {
					u.next[j] = u.start
				}
			}
			return true, nil
		}
	}
	return false, nil
}

// fillTerm adds where a term occurs in the window, and returns the first block behind
// the window that has any, or from and true when there are too many.
func (u *union) fillTerm(term Term, from uint64) (next uint64, full bool, err error) {
	rows := u.scan(term, from, u.to)
	defer rows.Close()
	next = exhausted
	for ok := rows.Next(); ok; ok = rows.Next() {
		if rows.Block() >= u.end {
			next = rows.Block()
			break
		}
		if u.decoded, err = rows.Positions(u.decoded[:0]); err != nil {
			return 0, false, err
		}
		for _, position := range u.decoded {
			u.entries = append(u.entries, (rows.Block()-u.start)<<32|uint64(position))
		}
		if len(u.entries) > u.most && u.end-u.start > 1 {
			next, full = from, true
			break
		}
	}
	return next, full, rows.Close()
}

func (u *union) positions(dst []uint32) ([]uint32, error) {
	block := u.entries[u.at] >> 32
	for _, entry := range u.entries[u.at:] {
		if entry>>32 != block {
			break
		}
		dst = append(dst, uint32(entry))
	}
	return dst, nil
}
