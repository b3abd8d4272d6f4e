package network

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/history/retention"
)

// eventPage asks for a page of events and returns the blocks of its events, or the code of an error.
func (s *windowServer) eventPage(members string) (numbers []uint64, token string, code int) {
	s.t.Helper()
	a := s.ask("rollup_getEvents", `[{`+members+`}]`)
	if a.Error != nil {
		return nil, "", a.Error.Code
	}
	var p struct {
		Events []struct {
			Number uint64 `json:"block_number"`
		}
		Token string `json:"continuation_token"`
	}
	if err := json.Unmarshal(a.Result, &p); err != nil {
		s.t.Fatal(err)
	}
	for _, event := range p.Events {
		numbers = append(numbers, event.Number)
	}
	return numbers, p.Token, 0
}

// TestPagesWhileAWindowMoves: pages that begin in the window follow those that began below it.
func TestPagesWhileAWindowMoves(t *testing.T) {
	s := serveWindow(t, retention.Window{State: 8, History: 12})
	s.grow(20, 18)
	const first = 7
	type paging struct {
		from, token string
		code        int
	}
	var open []paging
	for _, from := range []string{`"from_block":{"block_number":6},`, fmt.Sprintf(`"from_block":{"block_hash":%q},`, s.chain[6].Hash())} {
		all, _, _ := s.eventPage(from + `"chunk_size":1024`)
		below, _ := slices.BinarySearch(all, first)
		if below < 2 || below == len(all) {
			t.Fatalf("events of blocks %v, want two below %d and more", all, first)
		}
		for size, code := range map[int]int{below: 0, below - 1: 24} {
			_, token, _ := s.eventPage(from + fmt.Sprintf(`"chunk_size":%d`, size))
			open = append(open, paging{from, token, code})
		}
	}
	if err := s.network.archive.SetFirst(t.Context(), archive.Extent{Blocks: first, State: 11, Tries: 11}); err != nil {
		t.Fatal(err)
	}
	for _, removed := range []bool{false, true} {
		if removed {
			s.move()
		}
		for _, p := range open {
			numbers, _, code := s.eventPage(p.from + fmt.Sprintf(`"chunk_size":1,"continuation_token":%q`, p.token))
			if code != p.code || code == 0 && numbers[0] != first {
				t.Errorf("removed: %t, %s blocks %v, code %d, want code %d", removed, p.from, numbers, code, p.code)
			}
		}
	}
}

// TestEventsOfAWindow: rollup_getEvents begins with the first block of the window, and refuses
// ranges that begin before it instead of leaving out what was removed.
func TestEventsOfAWindow(t *testing.T) {
	s := serveWindow(t, retention.Window{State: 8, History: 12})
	s.grow(20, 18)
	const first = 7
	kind := `"keys":[["0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"]],`
	page := s.eventPage
	if numbers, _, code := page(kind + `"chunk_size":1`); code != 0 || numbers[0] >= first {
		t.Fatalf("blocks %v, code %d before blocks are removed, want one below %d", numbers, code, first)
	}
	_, token, _ := page(kind + `"chunk_size":1`)
	if err := s.network.archive.SetFirst(t.Context(), archive.Extent{Blocks: first, State: 11, Tries: 11}); err != nil {
		t.Fatal(err)
	}
	for _, removed := range []bool{false, true} {
		if removed {
			s.move()
		}
		for filter, want := range map[string]uint64{"": first, kind: first + 1} {
			numbers, next, code := page(filter + `"chunk_size":1`)
			if code != 0 || len(numbers) != 1 || numbers[0] != want || next == "" {
				t.Errorf("removed: %t, %q: blocks %v, code %d, want block %d and more", removed, filter, numbers, code, want)
			}
			for _, ends := range []string{
				`"from_block":{"block_number":6},`, `"from_block":{"block_number":1},"to_block":{"block_number":6},`, `"to_block":{"block_number":6},`,
				fmt.Sprintf(`"from_block":{"block_hash":%q},`, s.chain[6].Hash()),
			} {
				if numbers, _, code := page(filter + ends + `"chunk_size":5`); code != 24 {
					t.Errorf("removed: %t, %s%s blocks %v, code %d, want code 24", removed, filter, ends, numbers, code)
				}
			}
		}
		if numbers, _, code := page(kind + fmt.Sprintf(`"chunk_size":1,"continuation_token":%q`, token)); code != 33 {
			t.Errorf("removed: %t: blocks %v, code %d for a token that points below the first block, want code 33", removed, numbers, code)
		}
	}
}
