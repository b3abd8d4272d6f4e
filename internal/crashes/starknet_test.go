package crashes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"ashlar/history/paging"
	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/ingest"
	"ashlar/starknet/query"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/synthetic"
)

// TestKillWhileFollowing kills a service that follows a Starknet node, as a process, at random moments,
// while the node's chain grows and is reorganized. After each kill the store has a chain that the node
// had, with all its events. A service that is not killed reaches the node's head.
func TestKillWhileFollowing(t *testing.T) {
	t.Parallel()
	bin := build(t)
	random := rand.New(rand.NewPCG(killSeed, 5))
	chain := newStarknetChain(300)
	served := nodetest.New(t, 8, chain.blocks)
	served.ChainID = starknet.FeltOfText("SN_KILLED")
	n := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "killed"}
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nnetworks:\n  killed:\n    family: starknet\n    chain: SN_KILLED\n    source: %s\n", n.Data, served.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wanted := kills
	if *killsFlag > 0 {
		wanted = *killsFlag
	}
	advanced, last := 0, uint64(0)
	const usual = 600 * time.Millisecond // of a life at most, after the question
	most := usual
	// On a busy machine few runs add blocks.
	for runs := 0; runs < wanted || advanced < wanted/4 && runs < 5*wanted; runs++ {
		asked := served.Questions("starknet_blockHashAndNumber")
		p, err := n.ServeBy(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(4) > 0 { // most are killed while they follow
			awaitQuestion(t, p, served, asked)
		}
		if !killAfter(p, time.Duration(random.Int64N(int64(most)))) {
			t.Fatalf("the service exited by itself: %s", p.Output())
		}
		if head := checkStarknet(t, n, chain.known); head != last {
			advanced, last, most = advanced+1, head, usual
		} else {
			most = min(most+most/4, 20*usual) // on a busy machine blocks may come later
		}
		if random.IntN(2) == 0 {
			chain.reorganize(random.IntN(40))
		}
		chain.grow(random.IntN(40))
		served.Set(slices.Clone(chain.blocks))
	}
	if advanced < wanted/4 {
		t.Errorf("only %d of %d runs added blocks", advanced, wanted)
	}
	p, err := n.ServeBy(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, p, served)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if head := checkStarknet(t, n, chain.known); head != chain.blocks[len(chain.blocks)-1].Number {
		t.Errorf("the head is %d, want %d", head, chain.blocks[len(chain.blocks)-1].Number)
	}
}

// awaitQuestion waits until the service asks the node for its head once more, or exits.
func awaitQuestion(t *testing.T, p *node.Process, served *nodetest.Node, asked int) {
	t.Helper()
	await.Until(t, "a question about the head", func() bool { return hasEnded(p) || served.Questions("starknet_blockHashAndNumber") > asked })
}

// awaitIdle waits until the service requests only the head from the node, three times.
func awaitIdle(t *testing.T, p *node.Process, served *nodetest.Node) {
	t.Helper()
	heads, blocks := 0, -1
	await.Until(t, "the service to have the head", func() bool {
		if hasEnded(p) {
			t.Fatalf("the service exited by itself: %s", p.Output())
		}
		if asked := served.Questions("starknet_getBlockWithReceipts"); asked != blocks {
			heads, blocks = served.Questions("starknet_blockHashAndNumber"), asked
		}
		return served.Questions("starknet_blockHashAndNumber") >= heads+3
	})
}

func hasEnded(p *node.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// starknetChain is the chain of a node.
type starknetChain struct {
	made   *synthetic.Chain
	forks  []*synthetic.Chain // for each block, the generator of its descendants
	blocks []*starknet.Block
	known  map[starknet.Felt]*starknet.Block // all blocks that were ever in it
	seed   uint64
}

func newStarknetChain(n int) *starknetChain {
	c := &starknetChain{made: synthetic.New(synthetic.Default()), known: make(map[starknet.Felt]*starknet.Block), seed: 100}
	c.grow(n)
	return c
}

func (c *starknetChain) grow(n int) {
	for range n {
		block := c.made.Next()
		block.Version = "99.0" // no rule for its hash is known
		c.seed++
		c.blocks, c.forks = append(c.blocks, block), append(c.forks, c.made.Fork(c.seed))
		c.known[block.Hash] = block
	}
}

// reorganize replaces the last blocks by others.
func (c *starknetChain) reorganize(depth int) {
	keep := len(c.blocks) - depth
	c.made = c.forks[keep-1]
	c.blocks, c.forks = slices.Clone(c.blocks[:keep]), c.forks[:keep]
}

// checkStarknet compares a network, which no process may have open, with the blocks that its node ever
// had, and returns its head.
func checkStarknet(t *testing.T, n node.Ashlar, known map[starknet.Felt]*starknet.Block) (head uint64) {
	t.Helper()
	path := filepath.Join(n.Data, "networks", n.Network)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0 // killed before it was created
	}
	store, err := pebble.Open(pebble.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := t.Context()
	a, err := archive.Create(ctx, store, "SN_KILLED")
	if err != nil {
		t.Fatal(err)
	}
	follower, err := ingest.OpenFollower(ctx, store, a, ingest.DefaultDepth)
	if err != nil {
		t.Fatal(err)
	}
	view := query.NewChain(a, follower.Tip).View()
	if view == nil {
		return 0
	}
	return compareStarknet(ctx, t, view, known)
}

func compareStarknet(ctx context.Context, t *testing.T, view *query.View, known map[starknet.Felt]*starknet.Block) uint64 {
	t.Helper()
	span := view.Span()
	var want []string
	parent := starknet.Felt{}
	for number := span.First; number <= span.Last.Number; number++ {
		header, err := view.Header(ctx, number)
		if err != nil {
			t.Fatal(err)
		}
		block := known[header.Hash]
		if block == nil || block.Number != number || header.Parent != parent {
			t.Fatalf("block %d is %s with the parent %s, which the node never had after %s", number, header.Hash, header.Parent, parent)
		}
		parent = header.Hash
		for i := range block.Transactions {
			for _, event := range block.Transactions[i].Receipt.Events {
				want = append(want, fmt.Sprint(number, block.Transactions[i].Hash, event.From, len(event.Keys), len(event.Data)))
			}
		}
	}
	var got []string
	all := paging.Range{Begin: paging.Place{Block: span.First}, To: span.Last.Number, Size: len(want) + 1}
	if _, err := view.EventPage(ctx, &query.Filter{}, all, func(event *query.Event) error {
		got = append(got, fmt.Sprint(event.BlockNumber, event.TransactionHash, event.From, event.Keys.Left(), event.Data.Left()))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%d events up to block %d, want %d", len(got), span.Last.Number, len(want))
	}
	return span.Last.Number
}
