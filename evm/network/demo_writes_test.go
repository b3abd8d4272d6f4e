package network

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/source/demo"
	"ashlar/internal/await"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// watchedWrites is a store that calls a function before each write.
type watchedWrites struct {
	*kvtest.Doubtful
	before func()
}

// Write implements [kv.Store].
func (w *watchedWrites) Write(ctx context.Context, b kv.Batch) error {
	w.before()
	return w.Doubtful.Write(ctx, b)
}

// TestDemoAfterFailedWrites fails writes of a demo, in all ways: of its blocks, of its head, of what is safe and finalized at the end of
// an epoch, and those by which the tip learns what is settled. The blocks have the contents of a demo without failures.
func TestDemoAfterFailedWrites(t *testing.T) {
	raced.Skip(t)
	shown, below, place := fullDemo(t, 20)
	doubtful := kvtest.NewDoubtful(below)
	store := &watchedWrites{doubtful, func() {}}
	n, m := startMiner(t, shown, store, place)
	const shallow, last = 2 * epochBlocks, 7 * epochBlocks
	m.follower = n.follower(ingest.Depths{Unfinalized: 2, Most: 2}) // at first, so each block settles another one
	failures := make(map[string]int)
	for attempt := 0; n.tip.Forkchoice().Head.Ref().Number < last; attempt++ {
		head := n.tip.Forkchoice().Head
		if head.Ref().Number == shallow {
			m.follower = n.follower(ingest.DefaultDepths())
		}
		// The first and second writes of a block add it and make it the head. Any other one comes after that.
		doubtful.Fail, doubtful.How = attempt%4%3, kvtest.Outcome(attempt/4)%kvtest.Outcomes
		if attempt%4 == 3 || head.Ref().Number%epochBlocks == epochBlocks-1 {
			doubtful.Fail = 0
			if attempt%4 != 3 {
				doubtful.How = kvtest.Outcome(head.Ref().Number/epochBlocks) % kvtest.Outcomes
			}
			store.before = func() {
				if n.tip.Forkchoice().Head.Ref() != head.Ref() {
					doubtful.Fail, store.before = 1, func() {}
				}
			}
		}
		err := m.mine(t.Context())
		store.before = func() {}
		switch {
		case err != nil && !errors.Is(err, kvtest.ErrDoubtful):
			t.Fatal(err)
		case err != nil && n.tip.Forkchoice().Head.Ref() == head.Ref():
			failures["before the block is the head"]++
		case err != nil:
			failures[fmt.Sprintf("after it, %s", doubtful.How)]++
		}
		doubtful.Fail = 0
		switch attempt % 4 {
		case 1, 2:
			continue
		case 0:
			doubtful.Fail = 3 // the tip does not learn what is settled: mine has to tell it
		}
		if err := settleDue(t, n, m); errors.Is(err, kvtest.ErrDoubtful) {
			failures["when blocks are settled"]++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(failures) != 2+int(kvtest.Outcomes) {
		t.Errorf("writes did not fail where they were to: %v", failures)
	}
	checkContents(t, n, shown)
}

// settleDue settles the blocks of a demo that are due. It returns the first error.
func settleDue(t *testing.T, n *network, m *miner) error {
	t.Helper()
	done := func() bool {
		forkchoice := n.tip.Forkchoice()
		due := m.follower.Depths().Due(forkchoice.Head.Ref().Number, forkchoice.Finalized)
		return forkchoice.Head.Settled().Number >= max(due, forkchoice.Finalized.Number)
	}
	if done() {
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running errgroup.Group
	var failed atomic.Bool
	running.Go(func() error {
		err := m.follower.Run(ctx)
		failed.Store(err != nil)
		return err
	})
	await.Until(t, "settled blocks", func() bool { return failed.Load() || done() })
	stop()
	return running.Wait()
}

// checkContents compares the blocks of a demo with its traffic.
func checkContents(t *testing.T, n *network, shown *demo.Network) {
	t.Helper()
	view, err := n.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := shown.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	for number := uint64(1); number <= view.Head().Number; number++ {
		block, err := view.Block(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		want, err := traffic.Next(number, block.BaseFee())
		if err != nil {
			t.Fatal(err)
		}
		header := block.Header()
		got := demo.Contents{Number: number, FeeRecipient: header.Coinbase, PrevRandao: header.MixDigest, ParentBeaconRoot: *header.ParentBeaconRoot, Withdrawals: block.Withdrawals()}
		if header.SlotNumber != nil {
			got.SlotNumber = *header.SlotNumber
		}
		left := slices.DeleteFunc(slices.Clone(want.Transactions), func(tx *types.Transaction) bool { return block.Transaction(tx.Hash()) != nil })
		if len(block.Transactions())+len(left) != len(want.Transactions) {
			t.Fatalf("block %d has %d transactions, and lacks %d of the %d of its traffic", number, len(block.Transactions()), len(left), len(want.Transactions))
		}
		for _, tx := range left {
			if room := block.GasLimit() - block.GasUsed(); tx.Gas() <= room {
				t.Fatalf("block %d lacks a transaction with %d gas, and has room for %d", number, tx.Gas(), room)
			}
		}
		if len(left) > 0 { // as the miner does it
			if err := traffic.Resume(nonces(t.Context(), view.State(number))); err != nil {
				t.Fatal(err)
			}
		}
		want.Timestamp, want.Transactions, want.Intents = 0, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("block %d has the contents %+v, expected %+v", number, got, want)
		}
	}
}
