package query

import (
	"testing"

	"ashlar/forwarded"

	"github.com/ethereum/go-ethereum/common"
)

// The hashes of followed blocks are those of the present chain alone.
func TestLinksOfAnotherChain(t *testing.T) {
	var l links
	for _, step := range []struct {
		view *forwarded.View
		want map[uint64]byte // 0: none
	}{
		{viewOf(1, 1, 2, 3), map[uint64]byte{1: 1, 3: 3, 4: 0}},
		{viewOf(2, 2, 3, 4), map[uint64]byte{1: 1, 3: 3, 4: 4}},
		{viewOf(2, 2, 0x33), map[uint64]byte{1: 1, 2: 2, 3: 0x33, 4: 0}},
		{viewOf(10, 10, 11), map[uint64]byte{1: 0, 2: 0, 3: 0, 10: 10, 11: 11}}, // too far away: those between may be of another branch
	} {
		l.move(step.view)
		for number, want := range step.want {
			if hash, ok := l.at(number); hash != (common.Hash{want}) || ok != (want != 0) {
				t.Errorf("with the head %s, block %d is %s, %t, expected %s", step.view.Head().Ref, number, hash, ok, common.Hash{want})
			}
		}
	}
}
