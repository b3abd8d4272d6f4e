package archive

import (
	"slices"
	"testing"

	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
)

// TestPostingsOfEveryTerm compares the postings of every term with the receipts.
func TestPostingsOfEveryTerm(t *testing.T) {
	g := newGrower(t, 200)
	for range 50 {
		g.block()
	}
	a := grown(t, g)
	want := make(map[postings.Term]map[uint64][]uint32)
	add := func(term postings.Term, block uint64, position uint32) {
		if want[term] == nil {
			want[term] = make(map[uint64][]uint32)
		}
		want[term][block] = append(want[term][block], position)
	}
	for number, delta := range g.blocks {
		var position uint32
		for _, receipt := range delta.Receipts {
			for _, log := range receipt.Logs {
				add(AddressTerm(log.Address), uint64(number), position)
				for i, topic := range log.Topics {
					add(TopicTerm(i, topic), uint64(number), position)
				}
				position++
			}
		}
	}
	for term, blocks := range want {
		for _, span := range [][2]uint64{{0, 49}, {10, 20}, {7, 7}, {50, 90}} {
			checkPostings(t, a, term, blocks, span[0], span[1])
		}
	}
	checkPostings(t, a, TopicTerm(0, common.Hash{31: 99}), nil, 0, 49)
}

func checkPostings(t *testing.T, a *Archive, term postings.Term, want map[uint64][]uint32, from, to uint64) {
	t.Helper()
	found := a.Postings(t.Context(), term, from, to)
	defer found.Close()
	for number := from; number <= to; number++ {
		if want[number] == nil {
			continue
		}
		if !found.Next() || found.Block() != number {
			t.Fatalf("term %x: expected block %d next", term, number)
		}
		if got, err := found.Positions(nil); err != nil || !slices.Equal(got, want[number]) {
			t.Fatalf("term %x in block %d: at %v, %v, want %v", term, number, got, err, want[number])
		}
	}
	if found.Next() {
		t.Fatalf("term %x: block %d is too much", term, found.Block())
	}
	if err := found.Close(); err != nil {
		t.Fatal(err)
	}
}
