package chain

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

func TestHeights(t *testing.T) {
	for _, c := range []struct {
		heads  []uint64
		quorum int
		want   []uint64
	}{
		{[]uint64{7}, 1, []uint64{7}},
		{[]uint64{5, 9, 7}, 1, []uint64{9, 7, 5}},
		{[]uint64{5, 9, 7}, 2, []uint64{7, 5}},
		{[]uint64{5, 9, 7}, 3, []uint64{5}},
		{[]uint64{9, 5, 9, 5}, 2, []uint64{9, 5}},
	} {
		if got := Heights(slices.Clone(c.heads), c.quorum); !slices.Equal(got, c.want) {
			t.Errorf("heads %d, quorum %d: %d, want %d", c.heads, c.quorum, got, c.want)
		}
	}
}

func TestElected(t *testing.T) {
	none, a, b := common.Hash{}, common.Hash{1}, common.Hash{2}
	for _, c := range []struct {
		votes  []common.Hash
		quorum int
		want   common.Hash // zero: no block is elected
	}{
		{nil, 1, none},
		{[]common.Hash{a}, 1, a},
		{[]common.Hash{a, b}, 1, none},
		{[]common.Hash{a, b, a}, 2, a},
		{[]common.Hash{a, b, a, b}, 2, none},
		{[]common.Hash{none, none, a}, 2, none},
		{[]common.Hash{none, a, none, a}, 2, a},
	} {
		if got, ok := Elected(c.votes, c.quorum); got != c.want && ok || ok != (c.want != none) {
			t.Errorf("votes %x, quorum %d: %x, %v, want %x", c.votes, c.quorum, got, ok, c.want)
		}
	}
}
