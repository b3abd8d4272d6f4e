package api

import (
	"testing"

	"ashlar/chain"
	"ashlar/forwarded"

	"github.com/ethereum/go-ethereum/common"
)

// TestStartWhileTheHeadReturns: a client that subscribes while a move is published has the head
// in the end, whatever heads are published before the one that it began with.
func TestStartWhileTheHeadReturns(t *testing.T) {
	view := func(ids ...byte) *forwarded.View {
		blocks := []*forwarded.Block{{Ref: chain.Ref{Number: 9, Hash: common.Hash{1}}}}
		for _, id := range ids {
			last := blocks[len(blocks)-1]
			blocks = append(blocks, &forwarded.Block{Ref: chain.Ref{Number: last.Number + 1, Hash: common.Hash{id}}, Parent: last.Hash})
		}
		return forwarded.NewView(blocks, 0, 0)
	}
	for name, heads := range map[string][]*forwarded.View{ // the last of each round; the client begins with the last of all
		"returns":       {view('x'), view('y'), view('x')},
		"returns twice": {view('x'), view('y'), view('x'), view('y')},
		"goes on":       {view('x'), view('y'), view('y', 'z')},
		"stays":         {view('x'), view('y'), view('y')},
	} {
		end := heads[len(heads)-1]
		s, has := start{view: end, round: uint64(len(heads) - 1)}, make(map[common.Hash]bool)
		for _, b := range end.Blocks() {
			has[b.Hash] = true
		}
		publish := func(b *forwarded.Block, dropped bool, round int) {
			u := &update{block: b, dropped: dropped, round: uint64(round)}
			if s.wants(u) {
				if has[b.Hash] != dropped {
					t.Errorf("%s, round %d: block %x is notified again, dropped: %t", name, round, b.Hash[0], dropped)
				}
				has[b.Hash] = !dropped
			}
			s.passed(u)
		}
		after := append(heads, view('x', 'w')) // which is not in the view
		for round := 1; round < len(after); round++ {
			dropped, added, _ := forwarded.Changes(after[round-1], after[round])
			for _, b := range dropped {
				publish(b, true, round)
			}
			for _, b := range added {
				publish(b, false, round)
			}
			for id := byte('w'); round >= len(heads)-1 && id <= 'z'; id++ {
				if _, is := after[round].Number(common.Hash{id}); has[common.Hash{id}] != is {
					t.Errorf("%s, after round %d: the client has block %c: %t, want %t", name, round, id, !is, is)
				}
			}
		}
	}
}
