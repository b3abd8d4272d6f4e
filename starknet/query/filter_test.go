package query

import (
	"fmt"
	"slices"
	"testing"

	"ashlar/starknet"
)

// TestTermsOfLargeFilters: contracts and first keys are looked up together while these are few, and each on their own when there
// would be too many pairs.
func TestTermsOfLargeFilters(t *testing.T) {
	values := func(n int) (list []starknet.Felt) {
		for i := range n {
			list = append(list, starknet.Felt{byte(i >> 8), byte(i)})
		}
		return list
	}
	for _, c := range []struct {
		contracts, keys int
		want            []int // the number of terms of each set
	}{
		{0, 0, []int{1}},
		{3, 0, []int{3}},
		{0, 3, []int{3}},
		{3, 5, []int{15}},
		{2, maxCombined / 2, []int{maxCombined}},
		{2, maxCombined/2 + 1, []int{2, maxCombined/2 + 1}},
		{1, 2 * maxCombined, []int{2 * maxCombined}},
		{400, 300, []int{300, 400}},
	} {
		filter := &Filter{From: values(c.contracts), Keys: [][]starknet.Felt{values(c.keys)}}
		var got []int
		for _, set := range filter.terms() {
			got = append(got, len(set))
		}
		if what := fmt.Sprintf("%d contracts and %d keys", c.contracts, c.keys); !slices.Equal(got, c.want) {
			t.Errorf("%s: sets of %d terms, expected %d", what, got, c.want)
		}
	}
}
