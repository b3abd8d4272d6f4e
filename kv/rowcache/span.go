package rowcache

import (
	"cmp"
	"slices"
)

// row is a row of a known partition. Its value is never changed.
type row struct {
	sort  uint64
	value []byte
}

// span says which rows a partition has between two sort keys: these, and no others.
type span struct {
	from, to uint64
	rows     []row // ascending
	// growing is the generation of the store in which no row was added to the partition
	// since the span was made, but those that the span has: then it ends with the last
	// settled block. It is 0 if the span ends at to.
	growing uint64
	// ahead says that the span was read aside (see [kv.Aside]) and nobody has asked for it: finding it is
	// not a hit.
	ahead bool
}

const (
	maxSpans    = 4  // of an entry
	maxSpanRows = 64 // of a span that grows or is joined to another one
)

// find returns the index of the first row at or after sort.
func (p *span) find(sort uint64) int {
	i, _ := slices.BinarySearchFunc(p.rows, sort, func(r row, sort uint64) int { return cmp.Compare(r.sort, sort) })
	return i
}

// upTo returns the rows at or below sort.
func (p *span) upTo(sort uint64) []row {
	i := p.find(sort)
	if i < len(p.rows) && p.rows[i].sort == sort {
		i++
	}
	return p.rows[:i:i]
}

// grow adds a row of a block that settles.
func (p *span) grow(r row) {
	i := p.find(r.sort)
	if i < len(p.rows) && p.rows[i].sort == r.sort {
		return
	}
	// A reader may hold the old slice, so its array is not changed.
	p.rows = slices.Insert(slices.Clone(p.rows), i, r)
	if n := len(p.rows); n > maxSpanRows {
		p.rows = slices.Clip(p.rows[n/2:])
		p.from = p.rows[0].sort
	}
}

// join adds another span to p if the two overlap or touch, and says whether they did.
func (p *span) join(other span) bool {
	apart := p.to < other.from && p.to+1 != other.from || other.to < p.from && other.to+1 != p.from
	if apart || len(p.rows)+len(other.rows) > maxSpanRows {
		return false
	}
	rows := slices.Concat(p.rows, other.rows)
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.sort, b.sort) })
	p.rows = slices.CompactFunc(rows, func(a, b row) bool { return a.sort == b.sort })
	if other.to >= p.to {
		p.growing = max(p.growing, other.growing)
	}
	p.from, p.to = min(p.from, other.from), max(p.to, other.to)
	return true
}

// entry is what is known of one partition.
type entry struct {
	key   string
	spans []span
	size  int64
}

const (
	entryBytes = 200 // of an entry in the map and the list, without its key
	spanBytes  = 56
	rowBytes   = 32
)

// measure returns the memory that the entry takes.
func (e *entry) measure() int64 {
	size := entryBytes + len(e.key)
	for i := range e.spans {
		size += spanBytes
		for _, r := range e.spans[i].rows {
			size += rowBytes + len(r.value)
		}
	}
	return int64(size)
}

// add adds a span. The oldest ones are dropped when there are too many, but not one that
// grows.
func (e *entry) add(p span) {
	for i := 0; i < len(e.spans); {
		old := e.spans[i]
		switch {
		case p.from <= old.from && old.to <= p.to && old.growing <= p.growing, p.join(old):
			e.spans = slices.Delete(e.spans, i, i+1)
		default:
			i++
		}
	}
	e.spans = append(e.spans, p)
	for i := 0; len(e.spans) > maxSpans; i++ {
		if e.spans[i].growing == 0 || i == len(e.spans)-1 {
			e.spans = slices.Delete(e.spans, i, i+1)
			return
		}
	}
}
