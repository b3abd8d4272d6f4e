package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// history is the fact that holds for a subject at each moment; "" for none.
type history map[string][]string

// enter enters a history into a ledger, each fact in pieces, in random order.
func (h history) enter(random *rand.Rand, l *Ledger, s Side) {
	type piece struct {
		subject, fact string
		from, to      int
	}
	var pieces []piece
	for subject, facts := range h {
		for from := 0; from < len(facts); {
			to := from + 1
			for to < len(facts) && facts[to] == facts[from] && random.IntN(4) > 0 {
				to++
			}
			if facts[from] != "" {
				pieces = append(pieces, piece{subject, facts[from], from, to})
			}
			from = to
		}
	}
	random.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	fork := l.Fork()
	for i, p := range pieces {
		of := []*Ledger{l, fork}[i%2]
		of.Hold(s, []byte(p.subject), []byte(p.fact), p.from, p.to)
	}
	l.Join(fork)
}

// TestLedger: equal statements of both sides cancel, however they are split; otherwise the first
// differing moment and subject are found.
func TestLedger(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, moments := range []int{1, 2, 40, buckets + 100} {
		h := make(history)
		for i := range 10 {
			facts := make([]string, moments)
			for m := range facts {
				if facts[m] = fmt.Sprint(random.IntN(4)); facts[m] == "0" {
					facts[m] = ""
				} else if m > 0 && random.IntN(3) > 0 {
					facts[m] = facts[m-1]
				}
			}
			h[fmt.Sprint("subject ", i)] = facts
		}
		pass := func(other history) func(l *Ledger) error {
			return func(l *Ledger) error {
				h.enter(random, l, Expected)
				other.enter(random, l, Found)
				return nil
			}
		}
		if all, err := Compare(NewLedger(moments), pass(h)); len(all) > 0 || err != nil {
			t.Errorf("%d moments: the same histories differ: %v, %v", moments, all, err)
		}
		for range 3 {
			at, subject := random.IntN(moments), fmt.Sprint("subject ", random.IntN(10))
			other := history{}
			for s, facts := range h {
				other[s] = facts
			}
			other[subject] = slices.Clone(h[subject])
			other[subject][at] = "other"
			all, err := Compare(NewLedger(moments), pass(other))
			if err != nil || len(all) == 0 || all[0] != (Difference{at, subject}) {
				t.Errorf("%d moments: %q differs at %d, found is %v, %v", moments, subject, at, all, err)
			}
		}
	}
}

// TestLedgerMuchDamage: more subjects differ than one pass can record.
func TestLedgerMuchDamage(t *testing.T) {
	all, err := Compare(NewLedger(10), func(l *Ledger) error {
		for i := range 40 * siftedSubjects {
			moment := 3
			if i > 0 {
				moment = 9
			}
			l.Enter(Expected, fmt.Append(nil, i), nil, moment)
		}
		return nil
	})
	if err != nil || len(all) == 0 || all[0] != (Difference{3, "0"}) {
		t.Errorf("found %v, %v", all, err)
	}
}
