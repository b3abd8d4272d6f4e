package node

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/internal/await"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"

	"github.com/ethereum/go-ethereum/common"
)

// forged returns a chain with the same hashes and other contents.
func forged(blocks []*starknet.Block, forge func(*starknet.Block)) []*starknet.Block {
	var all []*starknet.Block
	for _, block := range blocks {
		other := *block
		other.Transactions = slices.Clone(block.Transactions)
		forge(&other)
		all = append(all, &other)
	}
	return all
}

// Two of three nodes decide what is in a block whose hash does not prove it, wherever the third
// one is in the list.
func TestGroupConfirmsContents(t *testing.T) {
	main := makeChain(nil, 5, 20, 1)
	for name, forge := range map[string]func(*starknet.Block){
		"an event more": func(b *starknet.Block) {
			b.Transactions[0].Receipt.Events = append(slices.Clone(b.Transactions[0].Receipt.Events), starknet.Event{From: starknet.FeltOf(99)})
		},
		"no event":                 func(b *starknet.Block) { b.Transactions[0].Receipt.Events = nil },
		"another fee":              func(b *starknet.Block) { b.Transactions[0].Receipt.ActualFee = starknet.FeltOf(3) },
		"a version without a rule": func(b *starknet.Block) { b.Version, b.Transactions = "99.0", nil },
		"a status":                 func(b *starknet.Block) { b.Status = starknet.AcceptedOnL1 },
	} {
		t.Run(name, func(t *testing.T) {
			for place := range 3 {
				fakes := []*nodetest.Node{nodetest.New(t, 9, main), nodetest.New(t, 8, main), nodetest.New(t, 6, main)}
				fakes[place].Set(forged(main, forge))
				g := newGroup(t, 2, fakes...)
				kept := copyTo(t, g, nil, main)
				for i, block := range kept.blocks {
					if !reflect.DeepEqual(block.Transactions, main[i].Transactions) || block.Status != starknet.AcceptedOnL2 {
						t.Fatalf("place %d, block %d: %+v is not what two nodes have", place, block.Number, block)
					}
				}
				if s := g.Status(); name != "a status" && place == 0 && s.Nodes[0].Invalid == 0 {
					t.Errorf("the node that forged blocks is not counted: %+v", s.Nodes[0])
				}
			}
		})
	}
}

// A node that differed from a liar, while no quorum could be asked, is not blamed once a quorum sends what it sent.
func TestGroupForgivesNodes(t *testing.T) {
	main := makeChain(nil, 0, 3, 1)
	g := newGroup(t, 2, nodetest.New(t, 10, main), nodetest.New(t, 10, main))
	blocks, err := g.proven(t.Context(), g.members[1], main[0].Number, chain.Ref{Number: main[2].Number, Hash: common.Hash(main[2].Hash)})
	if err != nil {
		t.Fatal(err)
	}
	refuted := map[*member]error{g.members[0]: errContradiction}
	err = g.confirm(t.Context(), g.members, g.members[1], blocks, chain.Ref{Number: main[2].Number, Hash: common.Hash(main[2].Hash)}, refuted)
	if err != nil || len(refuted) > 0 {
		t.Errorf("%v, %d nodes are blamed", err, len(refuted))
	}
}

// Two nodes that agree on hashes and not on contents are no quorum.
func TestGroupWithOtherContents(t *testing.T) {
	main := makeChain(nil, 0, 3, 1)
	fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 10, forged(main, func(b *starknet.Block) { b.Transactions[0].Receipt.Events = nil }))}
	g := newGroup(t, 2, fakes...)
	g.options.Poll = 20 * time.Millisecond
	kept := &keptChain{t: t, until: common.Hash(main[2].Hash)}
	ended := make(chan error, 1)
	go func() { ended <- g.Follow(t.Context(), 0, kept) }()
	await.Until(t, "the disagreement", func() bool {
		return strings.Contains(g.Status().Problem, "block 0 has another list of events of transaction 0")
	})
	if status := g.Status(); status.Agreement.Nodes > 0 || status.Since.IsZero() {
		t.Errorf("the status is %+v", status.Agreement)
	}
	fakes[1].Set(main)
	if err := <-ended; !errors.Is(err, errArrived) {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kept.blocks[0].Transactions, main[0].Transactions) {
		t.Errorf("the first block is %+v", kept.blocks[0])
	}
}

// Blocks whose hashes prove what is in them are fetched from one node only.
func TestGroupFetchesProvenBlocksOnce(t *testing.T) {
	main := makeChain(nil, 0, 8, 1)
	for _, block := range main {
		block.Version, block.Commitments.StateDiff = "0.14.1", starknet.FeltOf(1)
	}
	fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 10, main)}
	copyTo(t, newGroup(t, 2, fakes...), nil, main)
	if n := fakes[0].Questions("starknet_getBlockWithReceipts") + fakes[1].Questions("starknet_getBlockWithReceipts"); n != len(main) {
		t.Errorf("%d blocks were fetched, expected %d", n, len(main))
	}
}

// A block whose hash proves what is in it does not vouch for the blocks before it.
func TestGroupConfirmsEveryBlock(t *testing.T) {
	main := makeChain(nil, 0, 3, 1)
	main[2].Version, main[2].Commitments.StateDiff = "0.14.1", starknet.FeltOf(1)
	forgery := forged(main, func(b *starknet.Block) { b.Transactions[0].Receipt.Events = nil })
	g := newGroup(t, 2, nodetest.New(t, 10, main), nodetest.New(t, 10, forgery))
	target := chain.Ref{Number: main[2].Number, Hash: common.Hash(main[2].Hash)}
	blocks, err := g.proven(t.Context(), g.members[1], main[0].Number, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.confirm(t.Context(), g.members, g.members[1], blocks, target, make(map[*member]error)); err == nil {
		t.Error("blocks with other contents are confirmed")
	}
}

// Whatever honest nodes of all versions say alike is compared.
func TestDifference(t *testing.T) {
	block := makeChain(nil, 5, 1, 1)[0]
	for want, forge := range map[string]func(*starknet.Block){
		"":                       func(b *starknet.Block) { b.L1GasPrice.Fri = starknet.FeltOf(5) },
		"timestamp":              func(b *starknet.Block) { b.Timestamp++ },
		"state root":             func(b *starknet.Block) { b.NewRoot = starknet.FeltOf(5) },
		"number of transactions": func(b *starknet.Block) { b.Transactions = append(b.Transactions, b.Transactions[0]) },
		"transaction 0":          func(b *starknet.Block) { b.Transactions[0].Hash = starknet.FeltOf(5) },
		"list of events of transaction 0": func(b *starknet.Block) {
			b.Transactions[0].Receipt.Events = []starknet.Event{{From: starknet.FeltOf(1)}}
		},
		"receipt of transaction 0 (fee)":   func(b *starknet.Block) { b.Transactions[0].Receipt.ActualFee = starknet.FeltOf(5) },
		"receipt of transaction 0 (ended)": func(b *starknet.Block) { b.Transactions[0].Receipt.Reverted = true },
		"receipt of transaction 0 (messages)": func(b *starknet.Block) {
			b.Transactions[0].Receipt.Messages = []starknet.Message{{To: starknet.FeltOf(5)}}
		},
	} {
		other := forged([]*starknet.Block{block}, forge)[0]
		want, _, _ := strings.Cut(want, " (")
		if got, back := difference(block, other), difference(other, block); got != want || back != want {
			t.Errorf("the difference is %q and %q, expected %q", got, back, want)
		}
	}
}
