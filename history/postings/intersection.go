package postings

import (
	"cmp"
	"math"
	"slices"
)

// Scan returns the blocks from <= b <= to in which a term occurs.
type Scan[T any] func(term T, from, to uint64) Postings

// Ahead reads side by side where terms occur in the blocks from <= b <= to, before they are scanned one after the other. There
// are at most AheadTerms of them.
type Ahead[T any] func(terms []T, from, to uint64)

// AheadTerms is how many terms are read at once.
const AheadTerms = 256

// group is a set of terms. It iterates over the blocks in which any of them occurs.
type group interface {
	// seek moves to the first block at or after block in which any term occurs, and returns
	// its number; false if there is none. It never moves backwards: if the current block is
	// beyond block, it stays there.
	seek(block uint64) (at uint64, ok bool, err error)
	// positions appends the terms' positions in the current block to dst, in ascending order.
	positions(dst []uint32) ([]uint32, error)
	// close may be called more than once.
	close() error
}

// Intersection iterates over the positions at which each of several sets has a term. It
// leapfrogs: each set skips to the block that the others have reached, until all are at the
// same block. It is for use by one goroutine and must be closed.
type Intersection struct {
	groups []group
	left   []uint32
	right  []uint32
}

// Intersect returns the intersection of sets of terms in the blocks from <= b <= to. There
// must be at least one set, and no set may be empty. ahead, which may be nil, is called for the first terms, whichever sets
// they are in, and before the terms of a set of several are scanned.
func Intersect[T any](scan Scan[T], ahead Ahead[T], sets [][]T, from, to uint64) (*Intersection, error) {
	if ahead != nil {
		first := slices.Concat(sets...)
		ahead(first[:min(len(first), AheadTerms)], from, to)
	}
	x := &Intersection{groups: make([]group, 0, len(sets))}
	first := make(map[group]uint64, len(sets))
	for _, set := range sets {
		var g group
		if len(set) == 1 {
			g = &single{rows: scan(set[0], from, to)}
		} else {
			g = newUnion(scan, ahead, set, from, to)
		}
		x.groups = append(x.groups, g)
		at, ok, err := g.seek(from)
		if err != nil || !ok {
			x.Close()
			x.groups = nil // empty result
			return x, err
		}
		from, first[g] = at, at
	}
	// The group that begins last probably has the fewest blocks.
	slices.SortStableFunc(x.groups, func(a, b group) int { return cmp.Compare(first[b], first[a]) })
	return x, nil
}

// Next finds the first block at or after block with a position at which each set has a
// term. It appends the positions to dst; ok is false if there is no such block. It never
// moves backwards.
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

// align moves all groups to the first common block at or after block.
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

// common returns the positions that all groups share in the current block.
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

// keepCommon returns the elements of a that are also in b, in place. Both must be ascending.
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

// Close closes all groups. It may be called more than once.
func (x *Intersection) Close() error {
	var first error
	for _, g := range x.groups {
		if err := g.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// single is a group with one term.
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
	sparseEntries = 4 << 10 // if a window has fewer, the next is larger
	maxEntries    = 1 << 18 // if a window has more, it is made smaller, down to one block
	maxWindow     = math.MaxUint32
)

// union is a group of several, perhaps thousands of terms. It loads a window of blocks at a
// time, one term after the other, so it needs only one cursor and little memory. For each
// term it remembers the next occurrence beyond the window, so a term costs nothing in
// windows in which it does not occur.
type union[T any] struct {
	scan  Scan[T]
	ahead Ahead[T] // may be nil
	terms []T
	next  []uint64 // for each term, a lower bound of its next block beyond the window
	to    uint64

	start, end uint64   // the window: start <= block < end
	width      uint64   // of the next window
	most       int      // see maxEntries
	entries    []uint64 // of the window: block minus start (32 bits), position (32 bits)
	at         int      // index of the current block's first entry
	decoded    []uint32 // scratch
}

const exhausted = math.MaxUint64 // in union.next: no further occurrence

func newUnion[T any](scan Scan[T], ahead Ahead[T], terms []T, from, to uint64) *union[T] {
	u := &union[T]{scan: scan, ahead: ahead, terms: terms, next: make([]uint64, len(terms)), to: to, start: from, end: from, width: firstWindow, most: maxEntries}
	for i := range u.next {
		u.next[i] = from
	}
	return u
}

func (u *union[T]) close() error { return nil } // load closes its cursors

func (u *union[T]) block(entry int) uint64 { return u.start + u.entries[entry]>>32 }

func (u *union[T]) seek(block uint64) (uint64, bool, error) {
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
		// Another group skipped blocks that were loaded here: load fewer.
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

// upcoming returns the earliest block at or after block at which the next window can begin.
func (u *union[T]) upcoming(block uint64) (uint64, bool) {
	start := uint64(exhausted)
	for _, next := range u.next {
		start = min(start, max(next, block))
	}
	return start, start <= u.to
}

// load loads the window that begins at start.
func (u *union[T]) load(start uint64) error {
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
	u.entries = slices.Compact(u.entries) // colliding terms
	return nil
}

// fill reads all terms of the window. It returns true if the window has too many entries.
func (u *union[T]) fill() (full bool, err error) {
	read := 0 // terms before this one are read ahead
	for i, term := range u.terms {
		if u.next[i] >= u.end {
			continue
		}
		if u.ahead != nil && i >= read {
			read = u.readAhead(i)
		}
		if u.next[i], full, err = u.fillTerm(term, max(u.next[i], u.start)); err != nil {
			return false, err
		}
		if full {
			for j := range u.terms[:i] { // already read; will be read again
				if u.next[j] >= u.end {
					u.next[j] = u.start
				}
			}
			return true, nil
		}
	}
	return false, nil
}

// readAhead reads the next terms that may occur in the window, from a term on. It returns the first term that it has not read.
func (u *union[T]) readAhead(term int) int {
	var group []T
	for ; term < len(u.terms) && len(group) < AheadTerms; term++ {
		if u.next[term] < u.end {
			group = append(group, u.terms[term])
		}
	}
	u.ahead(group, u.start, u.to)
	return term
}

// fillTerm adds a term's occurrences in the window. It returns a term's first block beyond
// the window, or from and true if the window has too many entries.
func (u *union[T]) fillTerm(term T, from uint64) (next uint64, full bool, err error) {
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

func (u *union[T]) positions(dst []uint32) ([]uint32, error) {
	block := u.entries[u.at] >> 32
	for _, entry := range u.entries[u.at:] {
		if entry>>32 != block {
			break
		}
		dst = append(dst, uint32(entry))
	}
	return dst, nil
}
