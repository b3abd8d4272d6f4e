package paging

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// list is a list of candidates: positions by block.
type list [][]uint32

func (l list) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	for ; block < uint64(len(l)); block++ {
		if len(l[block]) > 0 {
			return block, append(dst, l[block]...), true, nil
		}
	}
	return 0, dst, false, nil
}

func (l list) Close() error { return nil }

// odd is a filter that rejects some candidates.
func odd(at Place) bool { return (at.Block+at.Position)%3 != 0 }

// TestPagesAreComplete: pages of any size, concatenated, are the unpaged result, and only the
// first page can be empty.
func TestPagesAreComplete(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		candidates := make(list, random.IntN(12))
		var want []Place
		from, to := random.Uint64N(12), random.Uint64N(14)
		for block := range candidates {
			for position := range uint32(random.IntN(3) * random.IntN(6)) {
				if random.IntN(3) > 0 {
					candidates[block] = append(candidates[block], position)
					at := Place{uint64(block), uint64(position)}
					if odd(at) && at.Block >= from && at.Block <= to {
						want = append(want, at)
					}
				}
			}
		}
		for size := 1; size < 9; size++ {
			var got []Place
			r := Range{Begin: Place{Block: from}, To: to, Size: size}
			for pages := 0; ; pages++ {
				before := len(got)
				next, err := Walk(candidates, r, func(at Place, onPage bool) (bool, error) {
					if odd(at) && onPage {
						got = append(got, at)
					}
					return odd(at), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(got) == before && (pages > 0 || next != nil) {
					t.Fatalf("page %d is empty", pages)
				}
				if next == nil {
					break
				}
				r.Begin, r.Resumed = *next, true
			}
			if !slices.Equal(got, want) {
				t.Fatalf("pages of %d: %v, want %v", size, got, want)
			}
		}
	}
}

func TestWalkEndsWithTheVisitorsError(t *testing.T) {
	stop := errors.New("stop")
	_, err := Walk(list{{0}}, Range{To: 5, Size: 1}, func(Place, bool) (bool, error) { return true, stop })
	if err != stop {
		t.Errorf("%v, want the visitor's error", err)
	}
}

func TestTokenComesBack(t *testing.T) {
	top := ^uint64(0)
	for _, want := range []Token{
		{},
		{Filter: Fingerprint{1, 2}, Next: Place{Block: 316843, Position: 10_000}, BlockHash: [32]byte{3, 31: 4}, To: 316843},
		{Next: Place{Block: top, Position: top}, To: top},
		{To: top},
	} {
		if got, err := ParseToken([]byte(want.String())); err != nil || got != want {
			t.Errorf("%+v came back as %+v, %v", want, got, err)
		}
	}
}

func TestMalformedTokensAreRefused(t *testing.T) {
	good := (&Token{Next: Place{Block: 5, Position: 6}, To: 9}).String()
	for _, text := range []string{
		"", "5-6", "x", good[:len(good)-1], good + "A", good[:10] + "\n" + good[10:], strings.Repeat("A", len(good)), "AQ" + good[2:], good + "=",
	} {
		if token, err := ParseToken([]byte(text)); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %+v, %v, want ErrToken", text, token, err)
		}
	}
}

// TestModifiedTokensAreRejected changes each digit of a token.
func TestModifiedTokensAreRejected(t *testing.T) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	good := (&Token{Filter: Fingerprint{7}, Next: Place{Block: 500, Position: 6}, BlockHash: [32]byte{8}, To: 9000}).String()
	for i := range good {
		for _, digit := range digits {
			text := good[:i] + string(digit) + good[i+1:]
			if token, err := ParseToken([]byte(text)); text != good && !errors.Is(err, ErrToken) {
				t.Errorf("%q: %+v, %v, want ErrToken", text, token, err)
			}
		}
	}
}

// TestResumedWithoutMatch: a place that no page can have issued is rejected, before any event is
// visited for the page.
func TestResumedWithoutMatch(t *testing.T) {
	candidates := list{{0, 2, 4}, nil, {1}}
	even := func(at Place, _ bool) (bool, error) { return at.Position != 2, nil }
	for _, test := range []struct {
		name  string
		begin Place
		to    uint64
		want  error
	}{
		{"an event", Place{0, 4}, 2, nil},
		{"the last event", Place{2, 1}, 2, nil},
		{"an event that does not match", Place{0, 2}, 2, ErrToken},
		{"between two events", Place{0, 3}, 2, ErrToken},
		{"behind a block's last event", Place{0, 5}, 2, ErrToken},
		{"a block without events", Place{1, 0}, 2, ErrToken},
		{"behind the last event of all", Place{2, 2}, 2, ErrToken},
		{"behind a range's last event", Place{0, 5}, 1, ErrToken},
	} {
		visited := 0
		next, err := Walk(candidates, Range{Begin: test.begin, To: test.to, Size: 9, Resumed: true}, func(at Place, onPage bool) (bool, error) {
			matches, err := even(at, onPage)
			if matches {
				visited++
			}
			return matches, err
		})
		if err != test.want || next != nil || (visited > 0) != (err == nil) {
			t.Errorf("%s: %v, %v, %d events, want %v", test.name, next, err, visited, test.want)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte((&Token{Next: Place{Block: 5, Position: 600}, To: 9}).String()))
	f.Add([]byte((&Token{To: 1 << 40}).String()))
	f.Add([]byte("8438-0"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		token, err := ParseToken(text)
		if err == nil && token.String() != string(text) {
			t.Fatalf("%q was read as %s", text, token.String())
		}
	})
}
