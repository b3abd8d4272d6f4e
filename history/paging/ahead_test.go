package paging

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestAheadFindsTheSame: a walk visits the same candidates whether they are found ahead or not,
// and Read has named each of them before.
func TestAheadFindsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		candidates := make(list, random.IntN(400))
		for block := range candidates {
			for position := range uint32(random.IntN(2) * random.IntN(9)) {
				if random.IntN(3) > 0 {
					candidates[block] = append(candidates[block], position)
				}
			}
		}
		r := Range{Begin: Place{Block: random.Uint64N(30), Position: random.Uint64N(3)}, To: random.Uint64N(500), Size: 1 + random.IntN(100)}
		walk := func(from Candidates, read func(Place) bool) (places []Place, next *Place) {
			next, err := Walk(from, r, func(at Place, onPage bool) (bool, error) {
				if !read(at) {
					t.Fatalf("%v was not read ahead", at)
				}
				places = append(places, at)
				return odd(at), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return places, next
		}
		wantPlaces, wantNext := walk(candidates, func(Place) bool { return true })
		read := make(map[Place]bool)
		ahead := &Ahead{Candidates: candidates, Most: r.Size, Read: func(found []Found) {
			if len(found) > AheadBlocks {
				t.Fatalf("%d blocks at once", len(found))
			}
			for _, f := range found {
				for _, position := range f.Positions {
					read[Place{f.Block, uint64(position)}] = true
				}
			}
		}}
		places, next := walk(ahead, func(at Place) bool { return read[at] })
		if !reflect.DeepEqual(places, wantPlaces) || !reflect.DeepEqual(next, wantNext) {
			t.Fatalf("%+v: %d candidates and %v, want %d and %v", r, len(places), next, len(wantPlaces), wantNext)
		}
	}
}

// failing is candidates that fail from a block on.
type failing struct {
	list
	from uint64
}

var errFailing = errors.New("failing")

func (f failing) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	at, positions, ok, err := f.list.Next(block, dst)
	if ok && at >= f.from {
		return 0, dst, false, errFailing
	}
	return at, positions, ok, err
}

func TestAheadFails(t *testing.T) {
	ahead := &Ahead{Candidates: failing{list{{1}, {2}, {3}}, 2}, Most: 9, Read: func([]Found) {}}
	if _, _, ok, err := ahead.Next(0, nil); ok || err != errFailing {
		t.Errorf("%t, %v, want the error", ok, err)
	}
}
