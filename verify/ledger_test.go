package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/kv"
)

// history is which fact held of a subject at each moment; "" for none.
type history map[string][]string

// enter says a history to a ledger, each fact in pieces, all in any order.
func (h history) enter(random *rand.Rand, l *ledger, s side) {
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
	fork := l.fork()
	for i, p := range pieces {
		of := []*ledger{l, fork}[i%2]
		of.hold(s, []byte(p.subject), []byte(p.fact), p.from, p.to)
	}
	l.join(fork)
}

// TestLedger: what two sides say alike cancels, however they say it; where they
// differ, the first moment and subject are found.
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
		pass := func(other history) func(l *ledger) error {
			return func(l *ledger) error {
				h.enter(random, l, expected)
				other.enter(random, l, found)
				return nil
			}
		}
		if all, err := compare(newLedger(moments), pass(h)); len(all) > 0 || err != nil {
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
			all, err := compare(newLedger(moments), pass(other))
			if err != nil || len(all) == 0 || all[0] != (difference{at, subject}) {
				t.Errorf("%d moments: %q differs at %d, found is %v, %v", moments, subject, at, all, err)
			}
		}
	}
}

// TestLedgerMuchDamage: more subjects differ than one pass looks at.
func TestLedgerMuchDamage(t *testing.T) {
	all, err := compare(newLedger(10), func(l *ledger) error {
		for i := range 40 * siftedSubjects {
			moment := 3
			if i > 0 {
				moment = 9
			}
			l.enter(expected, fmt.Append(nil, i), nil, moment)
		}
		return nil
	})
	if err != nil || len(all) == 0 || all[0] != (difference{3, "0"}) {
		t.Errorf("found %v, %v", all, err)
	}
}

// TestStepVersions: versions are the same whether rows ascend or descend.
func TestStepVersions(t *testing.T) {
	row := func(partition string, sort uint64, value string) kv.Row {
		return kv.Row{Partition: []byte(partition), Sort: sort, Value: []byte(value)}
	}
	rows := []kv.Row{row("a", 1, "x"), row("a", 3, "x"), row("a", 9, ""), row("b", 2, ""), row("b", 4, ""), row("c", 5, "y"), row("d", 6, "y"), row("d", 7, "z")}
	const never = math.MaxUint64
	want := map[string]bool{ // and whether it repeats
		fmt.Sprint("a", 1, 3, "x"): false, fmt.Sprint("a", 3, 9, "x"): true, fmt.Sprint("a", 9, uint64(never), ""): false,
		fmt.Sprint("b", 2, 4, ""): true, fmt.Sprint("b", 4, uint64(never), ""): true,
		fmt.Sprint("c", 5, uint64(never), "y"): false, fmt.Sprint("d", 6, 7, "y"): false, fmt.Sprint("d", 7, uint64(never), "z"): false,
	}
	for range 2 {
		count := 0
		err := stepVersions(func(yield func(kv.Row, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}, func(v version) error {
			key := fmt.Sprint(string(v.partition), v.from, v.until, string(v.value))
			if repeats, ok := want[key]; !ok || repeats != v.repeats {
				t.Errorf("version %s, repeats: %v", key, v.repeats)
			}
			count++
			return nil
		})
		if err != nil || count != len(want) {
			t.Errorf("%d versions, %v, want %d", count, err, len(want))
		}
		slices.Reverse(rows)
	}
}
