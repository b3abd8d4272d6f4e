package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/internal/await"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/core/types"
)

// A filter made while the chain's head is not published yet returns the changes after that
// head and none before.
func TestFiltersStartAtTheirHead(t *testing.T) {
	made := newBranches(t)
	asked, follower := newFollower(t, ingest.DefaultDepths())
	api := api.New(asked, api.Config{})
	s := &service{Server: jsonrpc.NewServer(methodsOf(api).Handlers(), jsonrpc.Config{Log: slog.New(slog.DiscardHandler)})}
	move := func(to *types.Block) {
		t.Helper()
		if err := follower.SetHead(t.Context(), to.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	a1, b1 := made.block(made.genesis, 1), made.block(made.genesis, 1)
	b2 := made.block(b1, 1)
	for _, block := range []*types.Block{a1, b1, b2} {
		if err := follower.Add(t.Context(), block); err != nil {
			t.Fatal(err)
		}
	}
	var blocks, logs [3]string // filters, each pair made on another head
	install := func(i int) {
		t.Helper()
		s.ask(t, &blocks[i], "eth_newBlockFilter")
		s.ask(t, &logs[i], "eth_newFilter", map[string]any{})
	}
	install(0)
	move(a1)
	install(1)
	move(b1)
	install(2)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	move(b2)
	poll := func(filter string) (all []notification) {
		t.Helper()
		await.Until(t, "the newest block in "+filter, func() bool {
			var results []json.RawMessage
			s.ask(t, &results, "eth_getFilterChanges", filter)
			for _, result := range results {
				one, err := notificationOf(result)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, notification{Block: one.Block, Removed: one.Removed})
			}
			return len(all) > 0 && all[len(all)-1].Block == b2.Hash()
		})
		return all
	}
	came := func(block *types.Block) notification { return notification{Block: block.Hash()} }
	left := func(block *types.Block) notification { return notification{Block: block.Hash(), Removed: true} }
	for i, want := range [3][]notification{
		{came(a1), left(a1), came(b1), came(b2)},
		{left(a1), came(b1), came(b2)},
		{came(b2)},
	} {
		if got := poll(logs[i]); !slices.Equal(got, want) {
			t.Errorf("filter %d for logs gives\n%v, expected\n%v", i, got, want)
		}
		want = slices.DeleteFunc(want, func(one notification) bool { return one.Removed })
		if got := poll(blocks[i]); !slices.Equal(got, want) {
			t.Errorf("filter %d for blocks gives\n%v, expected\n%v", i, got, want)
		}
	}
}
