package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/internal/await"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"

	"github.com/ethereum/go-ethereum/common"
)

// makeChain returns blocks on top of a parent, or from number first on if it is nil. Branches have
// different hashes.
func makeChain(parent *starknet.Block, first uint64, count int, branch uint64) []*starknet.Block {
	var blocks []*starknet.Block
	for range count {
		b := &starknet.Block{Header: starknet.Header{Number: first, Status: starknet.AcceptedOnL2, Version: "0.13.1"}}
		if parent != nil {
			b.Number, b.Parent = parent.Number+1, parent.Hash
		}
		b.Timestamp = 1000 + b.Number
		b.Hash = starknet.FeltOf(branch<<32 | b.Number + 1)
		event := starknet.Event{From: starknet.FeltOf(branch), Keys: []starknet.Felt{starknet.FeltOf(b.Number)}}
		b.Transactions = []starknet.Transaction{{
			Hash: starknet.FeltOf(branch<<40 | b.Number), Kind: starknet.Invoke, Version: 1,
			Receipt: starknet.Receipt{Events: []starknet.Event{event}},
		}}
		blocks = append(blocks, b)
		parent = b
	}
	return blocks
}

// optionsFor returns options with short times.
func optionsFor(fake *nodetest.Node) Options {
	return Options{
		URL: fake.URL + "/secret-key", Poll: time.Millisecond, FirstPause: time.Millisecond, LongestPause: 4 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// keptChain is a [Chain] in memory. It ends Follow at a given block.
type keptChain struct {
	t       testing.TB
	until   common.Hash
	blocks  []*starknet.Block
	reverts []chain.Ref
}

var errArrived = errors.New("arrived")

func (c *keptChain) Held(context.Context) (first, head chain.Ref, ok bool, err error) {
	if len(c.blocks) == 0 {
		return first, head, false, nil
	}
	return c.blocks[0].Ref(), c.blocks[len(c.blocks)-1].Ref(), true, nil
}

func (c *keptChain) Hash(_ context.Context, number uint64) (common.Hash, error) {
	at := slices.IndexFunc(c.blocks, func(b *starknet.Block) bool { return b.Number == number })
	if at < 0 {
		return common.Hash{}, fmt.Errorf("asked for block %d, which the chain does not have", number)
	}
	return common.Hash(c.blocks[at].Hash), nil
}

func (c *keptChain) Append(_ context.Context, b *starknet.Block) error {
	if n := len(c.blocks); n > 0 && (b.Parent != c.blocks[n-1].Hash || b.Number != c.blocks[n-1].Number+1) {
		c.t.Errorf("block %d (%s) was appended to block %d", b.Number, b.Hash, c.blocks[n-1].Number)
	}
	c.blocks = append(c.blocks, b)
	return c.arrived()
}

func (c *keptChain) Revert(_ context.Context, to chain.Ref) error {
	at := slices.IndexFunc(c.blocks, func(b *starknet.Block) bool { return b.Ref() == to })
	if at < 0 || at == len(c.blocks)-1 {
		c.t.Errorf("reverted to %s, which is not an ancestor of the head", to)
	}
	c.blocks = c.blocks[:at+1]
	c.reverts = append(c.reverts, to)
	return c.arrived()
}

func (c *keptChain) arrived() error {
	if n := len(c.blocks); n > 0 && common.Hash(c.blocks[n-1].Hash) == c.until {
		return errArrived
	}
	return nil
}

// followTo follows a node until it has the last of the wanted blocks, and compares the chains.
func followTo(t testing.TB, n *Node, first uint64, held []*starknet.Block, want []*starknet.Block) *keptChain {
	t.Helper()
	kept := &keptChain{t: t, until: common.Hash(want[len(want)-1].Hash), blocks: slices.Clone(held)}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	if err := n.Follow(ctx, first, kept); !errors.Is(err, errArrived) {
		t.Fatalf("Follow returned %v before it was complete", err)
	}
	if len(kept.blocks) != len(want) {
		t.Fatalf("%d blocks are held, expected %d", len(kept.blocks), len(want))
	}
	for i := range want {
		if kept.blocks[i].Hash != want[i].Hash {
			t.Fatalf("block %d is %s, expected %s", want[i].Number, kept.blocks[i].Hash, want[i].Hash)
		}
	}
	return kept
}

func newNode(t testing.TB, options Options) *Node {
	t.Helper()
	n, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
