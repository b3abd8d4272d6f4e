package chain

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Heights returns the numbers of nodes' heads that a quorum of the nodes has reached, in
// descending order. It sorts heads, of which there are at least quorum.
func Heights(heads []uint64, quorum int) []uint64 {
	slices.Sort(heads)
	slices.Reverse(heads)
	return slices.Compact(heads[quorum-1:])
}

// Elected returns the only hash that at least a quorum of the votes are for. A zero hash is
// an abstention.
func Elected(votes []common.Hash, quorum int) (hash common.Hash, ok bool) {
	counts := make(map[common.Hash]int)
	for _, vote := range votes {
		if vote != (common.Hash{}) {
			counts[vote]++
		}
	}
	winners := 0
	for candidate, count := range counts {
		if count >= quorum {
			hash = candidate
			winners++
		}
	}
	return hash, winners == 1
}

// Claimed returns the highest block that a quorum claims to have passed: of all claims of
// that number, the most frequent one. It sorts claims, of which there are at least quorum.
func Claimed(claims []Ref, quorum int) (most Ref) {
	slices.SortFunc(claims, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), a.Hash.Cmp(b.Hash))
	})
	number, count := claims[quorum-1].Number, 0
	for i, c := range claims {
		if c.Number != number {
			continue
		}
		same := 1
		for i+same < len(claims) && claims[i+same] == c {
			same++
		}
		if same > count {
			most, count = c, same
		}
	}
	return most
}
