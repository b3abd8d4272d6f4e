package network

import (
	"context"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/query"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/synthetic"

	"github.com/ethereum/go-ethereum/common"
)

// oracle is a source that says what is accepted on layer 1, and nothing else.
type oracle struct {
	source
	number uint64
}

func (o oracle) L1Accepted(context.Context, uint64, func(chain.Ref) error) (uint64, error) {
	return o.number, nil
}

// TestReaderLearnsL1: a reader that names no nodes learns what the writer's nodes say, also while it runs, and another writer
// after a restart. A block that the chain does not have any more does not count.
func TestReaderLearnsL1(t *testing.T) {
	store, a := newStored(t)
	if err := a.Append(t.Context(), chainOf(1, 10)...); err != nil {
		t.Fatal(err)
	}
	writer, reader := openServed(t, store, nil, false), openServed(t, store, nil, true)
	run := func(n *network, want string, done func() bool) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		await.Until(t, want, done)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	say := func(number, stored uint64) {
		t.Helper()
		writer.layer1 = oracle{number: number}
		run(writer, "what the node says is stored", func() bool {
			ref, _, err := a.Layer1(t.Context())
			return err == nil && ref.Number == stored
		})
	}
	learns := func(want uint64) {
		t.Helper()
		run(reader, "the reader knows what is stored", func() bool {
			number, _ := reader.chain.View().L1Accepted()
			return number == want
		})
	}
	expect := func(n *network, want uint64) {
		t.Helper()
		if number, known := n.chain.View().L1Accepted(); known != (want > 0) || number != want {
			t.Errorf("block %d, %t, want %d", number, known, want)
		}
	}
	head := a.Span().Last.Number
	expect(reader, 0)
	say(5, 5)
	learns(5)
	say(head+100, head)
	learns(head)
	expect(openServed(t, store, nil, false), head)
	if err := a.SetLayer1(t.Context(), chain.Ref{Number: 7, Hash: common.Hash{1}}); err != nil {
		t.Fatal(err)
	}
	expect(openServed(t, store, nil, true), 0)
}

// TestL1AcceptedOfALeftBranch: the newest block here is not accepted on layer 1 because a later one of the node is. It may
// be of a branch that the node has left while this network did not follow it.
func TestL1AcceptedOfALeftBranch(t *testing.T) {
	blocks := chainOf(1, 10)
	store, a := newStored(t)
	if err := a.Append(t.Context(), blocks[:6]...); err != nil {
		t.Fatal(err)
	}
	fake := nodetest.New(t, 9, chainOf(2, 10))
	fake.ChainID = starknet.FeltOfText("SN_MINE")
	fake.AcceptOnL1(blocks[9].Number)
	n := openServed(t, store, family.Sources{fake.URL}, false)
	if number, err := n.askL1(t.Context()); err == nil {
		t.Errorf("block %d is accepted, although the node has another one", number)
	}
	fake.Set(blocks)
	if number, err := n.askL1(t.Context()); err != nil || number != blocks[5].Number {
		t.Errorf("block %d, %v, want the newest one here, %d", number, err, blocks[5].Number)
	}
}

// openServed opens and serves a network that follows some nodes, or none.
func openServed(t *testing.T, store kv.Store, source family.Sources, reading bool) *network {
	t.Helper()
	opened, err := Family{}.Open(t.Context(), store, &Entries{Source: source, Quorum: 1}, reading)
	if err == nil {
		_, err = opened.Serve(t.Context(), family.Service{Name: "mine"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*network)
}

// TestL1AcceptedIsForgotten: what was accepted on layer 1 of a branch says nothing about the one that replaces it.
func TestL1AcceptedIsForgotten(t *testing.T) {
	made := synthetic.New(synthetic.Default())
	var blocks []*starknet.Block
	for range 6 {
		blocks = append(blocks, made.Next())
	}
	fork := made.Fork(7)
	branch := append(slices.Clone(blocks), fork.Next(), fork.Next(), fork.Next())
	blocks = append(blocks, made.Next(), made.Next())
	store, _ := newStored(t)
	fake := nodetest.New(t, 9, blocks)
	fake.ChainID = starknet.FeltOfText("SN_MINE")
	fake.AcceptOnL1(blocks[7].Number)
	n := openServed(t, store, family.Sources{fake.URL}, false)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.follow(ctx) }()
	defer func() {
		stop()
		<-ended
	}()
	head := func(want *starknet.Block) *query.View {
		t.Helper()
		var view *query.View
		await.Until(t, "the node's head", func() bool {
			view = n.chain.View()
			return view != nil && view.Span().Last == want.Ref()
		})
		return view
	}
	head(blocks[7])
	number, err := n.askL1(t.Context())
	if err != nil || number != blocks[7].Number {
		t.Fatalf("block %d, %v, want %d", number, err, blocks[7].Number)
	}
	n.chain.SetL1Accepted(number)
	fake.AcceptOnL1(blocks[2].Number)
	fake.Set(branch)
	view := head(branch[8])
	if number, known := view.L1Accepted(); !known || number != blocks[5].Number {
		t.Errorf("block %d is accepted, %t, want %d, where the branches part", number, known, blocks[5].Number)
	}
}
