package audit

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// buckets is how many groups a ledger tells apart, by moment and by subject.
const buckets = 1 << 14

// Ledger compares two sides that should say the same of how things were over
// time, in memory that does not grow with what they say. A side says that of some
// subject a fact held over a span of moments; it may say so in any order and in
// pieces, of which those that adjoin count as one.
//
// The beginning of each span is added to sums, its end taken from them, as a
// random number that subject, fact and moment determine; the other side's with
// the sign turned. What both sides say cancels, and what only one says stays, but
// for a chance of one in 2⁶⁴. The sums are kept by groups of moments and of
// subjects: a second pass keeps the entries of the groups that did not cancel,
// and so finds what it is that only one side says.
//
// A ledger belongs to one goroutine; [Ledger.Fork] and [Ledger.Join] give more of them their own.
type Ledger struct {
	seed    maphash.Seed
	moments int // how many there are
	sums    sums
	sift    *sift // nil in the first pass
	scratch []byte
}

type sums struct{ byMoment, bySubject [buckets]uint64 }

// sift is what the second pass looks for, and what it has found.
type sift struct {
	moments  int // group of moments
	subjects map[int]bool
	entries  map[string]uint64 // by entry; how often one side has it more than the other
}

// siftedSubjects bounds how many groups of subjects a second pass looks at, as
// much damage would make it keep too much.
const siftedSubjects = 64

// NewLedger makes a ledger of that many moments.
func NewLedger(moments int) *Ledger {
	return &Ledger{seed: maphash.MakeSeed(), moments: moments}
}

// Side is one of the two that a ledger compares.
type Side uint64

// The sides: what must be, and what is.
const (
	Expected Side = 1
	Found    Side = ^Side(0)
)

// Hold enters that a fact held of a subject at the moments from <= m < to, which
// may be none.
func (l *Ledger) Hold(s Side, subject, fact []byte, from, to int) {
	if from >= to {
		return
	}
	l.Enter(s, subject, fact, from)
	if to < l.moments {
		l.Enter(-s, subject, fact, to)
	}
}

// Enter enters that from a moment on a side says a fact of a subject.
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

// Fork is a ledger for another goroutine, to be joined to this one.
func (l *Ledger) Fork() *Ledger {
	fork := &Ledger{seed: l.seed, moments: l.moments}
	if l.sift != nil {
		fork.sift = &sift{l.sift.moments, l.sift.subjects, make(map[string]uint64)}
	}
	return fork
}

// Join adds what was entered in a fork.
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

// again is the ledger of another pass, which looks at the first moments at which
// the sides differ, and of the subjects of which they do at those groups that are
// left when skip of them were looked at. It is nil where none is left.
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

// Span is the moments from <= m < to that a second pass looks at.
func (l *Ledger) Span() (from, to int) {
	if l.sift == nil {
		return 0, l.moments
	}
	n := uint64(l.moments)
	begin := func(group int) int { return int((uint64(group)*n + buckets - 1) / buckets) }
	return begin(l.sift.moments), begin(l.sift.moments + 1)
}

// Difference is where the sides differ: from this moment on one says of the
// subject what the other does not.
type Difference struct {
	Moment  int
	Subject string
}

// differences are what a second pass has found, the first moments first and of
// each the shortest subjects.
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

// Compare makes passes over what two sides say until it is known where they
// first differ; nothing where they agree. Every pass enters the same, and those
// after the first need only what lies in the ledger's span.
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
