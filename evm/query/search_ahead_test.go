package query

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"ashlar/evm/execute"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/params"
)

// TestSearchRunsAhead searches 100 blocks, of which the replays of some wait. After such a block, the 32 after the next one run aside,
// each when the search has come to the eighth block before it. The one after these is traced alone, to see whether it waits. What runs
// aside does not see the values of the search's context, which belong to one goroutine.
func TestSearchRunsAhead(t *testing.T) {
	var mu sync.Mutex
	var begun []int
	type slot struct{}
	executor, err := execute.New(params.MergedTestChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	view := &View{chain: &Chain{executor: executor}}
	s := view.SearchAhead(context.WithValue(t.Context(), slot{}, "of the search"), 100, func(ctx context.Context, i int) (uint64, []int, error) {
		if ctx.Value(slot{}) != nil || !kv.IsAside(ctx) {
			t.Errorf("block %d runs aside in the context of the search", i)
		}
		mu.Lock()
		defer mu.Unlock()
		begun = append(begun, i)
		return 0, nil, errors.New("not found")
	})
	defer s.Stop()
	for i := range 100 {
		var want []int
		switch {
		case i == 3 || i == 37: // which have waited
			want = []int{i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8, i + 9}
		case i > 3 && i <= 27 || i > 37 && i <= 61:
			want = []int{i + 9}
		}
		s.Traced(i, i == 3 || i == 4 || i == 37) // block 4 is traced when the ones after it begin
		s.runs.Wait()
		slices.Sort(begun)
		if !slices.Equal(begun, want) {
			t.Errorf("after block %d, blocks %v began to run aside, expected %v", i, begun, want)
		}
		begun = nil
	}
}
