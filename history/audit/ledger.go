package audit

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// buckets is the number of groups of moments, and of groups of subjects.
const buckets = 1 << 14

// Ledger compares two sides of statements about history in constant memory. A statement
// says that a fact held for a subject over a span of moments. A side can make its statements
// in any order, and can split a span into adjoining ones.
//
// Each statement adds a random number, determined by subject, fact and moment, to sums for
// the beginning of the span, and subtracts one for its end. The other side's numbers have
// the opposite sign. So statements made by both sides cancel, and a statement made by one
// side only remains, except with a probability of 2⁻⁶⁴. Sums are kept by groups of moments
// and of subjects. Where they are not zero, a second pass records the entries of these
// groups, and so finds the statements made by one side only.
//
// A Ledger is for use by one goroutine; [Ledger.Fork] and [Ledger.Join] distribute the work.
type Ledger struct {
	seed    maphash.Seed
	moments int // total number
	sums    sums
	sift    *sift // nil in the first pass
	scratch []byte
}

type sums struct{ byMoment, bySubject [buckets]uint64 }

// sift selects what a second pass records, and holds the entries.
type sift struct {
	moments  int // the group of moments
	subjects map[int]bool
	entries  map[string]uint64 // occurrences by entry: expected minus found
}

// siftedSubjects bounds how many groups of subjects a second pass records, and so its memory
// when there is much damage.
const siftedSubjects = 64

// NewLedger returns a ledger for the moments 0 to moments-1.
func NewLedger(moments int) *Ledger {
	return &Ledger{seed: maphash.MakeSeed(), moments: moments}
}

// Side is one of the two sides that a ledger compares.
type Side uint64

// The sides: what should be stored, and what is stored.
const (
	Expected Side = 1
	Found    Side = ^Side(0)
)

// Hold states that a fact held for a subject at the moments from <= m < to. The span may be
// empty.
func (l *Ledger) Hold(s Side, subject, fact []byte, from, to int) {
	if from >= to {
		return
	}
	l.Enter(s, subject, fact, from)
	if to < l.moments {
		l.Enter(-s, subject, fact, to)
	}
}

// Enter states that a fact holds for a subject from a moment on.
func (l *Ledger) Enter(s Side, subject, fact []byte, moment int) {
	entry := binary.BigEndian.AppendUint64(l.scratch[:0], uint64(moment))
	entry = binary.BigEndian.AppendUint16(entry, uint16(len(subject)))
	entry = append(append(entry, subject...), fact...)
	l.scratch = entry
	byMoment, bySubject := l.groups(subject, moment)
	if l.sift == nil {
		sum := uint64(s) * maphash.Bytes(l.seed, entry)
		l.sums.byMoment[byMoment] += sum
		l.sums.bySubject[bySubject] += sum
		return
	}
	if byMoment != l.sift.moments || !l.sift.subjects[bySubject] {
		return
	}
	if l.sift.entries[string(entry)] += uint64(s); l.sift.entries[string(entry)] == 0 {
		delete(l.sift.entries, string(entry))
	}
}

func (l *Ledger) groups(subject []byte, moment int) (byMoment, bySubject int) {
	return int(uint64(moment) * buckets / uint64(l.moments)), int(maphash.Bytes(l.seed, subject) % buckets)
}

// Fork returns an empty ledger for another goroutine, to be merged with Join.
func (l *Ledger) Fork() *Ledger {
	fork := &Ledger{seed: l.seed, moments: l.moments}
	if l.sift != nil {
		fork.sift = &sift{l.sift.moments, l.sift.subjects, make(map[string]uint64)}
	}
	return fork
}

// Join merges a fork.
func (l *Ledger) Join(fork *Ledger) {
	for i := range buckets {
		l.sums.byMoment[i] += fork.sums.byMoment[i]
		l.sums.bySubject[i] += fork.sums.bySubject[i]
	}
	if l.sift == nil {
		return
	}
	for entry, n := range fork.sift.entries {
		if l.sift.entries[entry] += n; l.sift.entries[entry] == 0 {
			delete(l.sift.entries, entry)
		}
	}
}

// again returns the ledger of the next pass. It covers the first group of moments in which
// the sides differ, and the groups of subjects that differ, after the first skip of them. It
// returns nil if none are left.
func (l *Ledger) again(skip int) *Ledger {
	first := slices.IndexFunc(l.sums.byMoment[:], func(sum uint64) bool { return sum != 0 })
	next := &Ledger{seed: l.seed, moments: l.moments}
	next.sift = &sift{moments: first, subjects: make(map[int]bool), entries: make(map[string]uint64)}
	for i, sum := range l.sums.bySubject {
		if sum == 0 {
			continue
		}
		if skip--; skip < 0 && len(next.sift.subjects) < siftedSubjects {
			next.sift.subjects[i] = true
		}
	}
	if len(next.sift.subjects) == 0 {
		return nil
	}
	return next
}

// Span returns the moments from <= m < to that a pass needs to enter.
func (l *Ledger) Span() (from, to int) {
	if l.sift == nil {
		return 0, l.moments
	}
	n := uint64(l.moments)
	begin := func(group int) int { return int((uint64(group)*n + buckets - 1) / buckets) }
	return begin(l.sift.moments), begin(l.sift.moments + 1)
}

// Difference is a point at which the sides differ: from Moment on, only one of them makes
// some statement about Subject.
type Difference struct {
	Moment  int
	Subject string
}

// differences returns the differences found by a second pass, sorted by moment and then by
// length of subject.
func (l *Ledger) differences() []Difference {
	var all []Difference
	for entry := range l.sift.entries {
		length := int(binary.BigEndian.Uint16([]byte(entry[8:10])))
		all = append(all, Difference{int(binary.BigEndian.Uint64([]byte(entry[:8]))), entry[10 : 10+length]})
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Moment, b.Moment), cmp.Compare(len(a.Subject), len(b.Subject)), cmp.Compare(a.Subject, b.Subject))
	})
	return slices.Compact(all)
}

// Compare runs passes over the statements of both sides until the first differences are
// known. It returns nothing if the sides agree. Every pass must enter the same statements;
// passes after the first can omit those outside of the ledger's span.
func Compare(first *Ledger, pass func(l *Ledger) error) ([]Difference, error) {
	if err := pass(first); err != nil {
		return nil, err
	}
	for skip := 0; ; skip += siftedSubjects {
		next := first.again(skip)
		if next == nil {
			return nil, nil
		}
		if err := pass(next); err != nil {
			return nil, err
		}
		if all := next.differences(); len(all) > 0 {
			return all, nil
		}
	}
}
