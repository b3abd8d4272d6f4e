package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ashlar/chain"
	"ashlar/retry"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// memberRest is the number of polls for which a node that failed is not asked.
const memberRest = 5

// Group follows several nodes of one chain. A head is followed only if a quorum of the nodes
// has the block, and every block is proven to be an ancestor of such a head before it is
// appended. Blocks with events or receipts that their hashes do not prove must be sent alike
// by a quorum. So with a quorum of two, no single node can make an event visible.
type Group struct {
	members []*member
	quorum  int
	options Options // of the first node, without its URL

	mu        sync.Mutex
	agreement Agreement // guarded by mu
	voters    int       // guarded by mu: nodes that voted for its head
}

// member is a node of a group. Only Follow's goroutine uses its fields without a lock.
type member struct {
	*Node
	checked   bool      // it is on the expected chain
	resting   time.Time // until then it is not asked
	withholds bool      // it did not send its blocks when it was last asked for them
	differs   string    // guarded by Group.mu: what it has where the others agree
	voteless  string    // guarded by Group.mu: why it had no vote when it was last asked for one; empty if it had
}

// rest leaves a node alone for a while, because it failed or did not answer in time.
func (g *Group) rest(m *member) { m.resting = time.Now().Add(memberRest * g.options.Poll) }

// errNoQuorum means that no block has the votes of a quorum of the nodes.
var errNoQuorum = errors.New("the nodes do not agree")

// NewGroup returns a group of nodes that differ in their URLs. quorum is at least 1, and at
// most the number of nodes. It does not connect yet.
func NewGroup(urls []string, quorum int, options Options) (*Group, error) {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	g, known := &Group{quorum: quorum}, make(map[string]int)
	for _, url := range urls {
		options.URL = url
		n, err := New(options)
		if err != nil {
			return nil, err
		}
		host := n.Status().Name
		if known[host]++; known[host] > 1 { // each needs a name of its own: metrics have it as a label
			n.rename(fmt.Sprintf("%s (%d)", host, known[host]), options.Logger)
		}
		g.members = append(g.members, &member{Node: n})
	}
	g.options = g.members[0].options
	g.options.Logger = options.Logger
	return g, nil
}

// Follow copies the chain on which a quorum of the nodes agrees to another, until ctx is done
// or an error of that chain occurs. An empty chain begins with the block number first.
func (g *Group) Follow(ctx context.Context, first uint64, to Chain) error {
	for _, m := range g.members {
		defer m.options.HTTP.CloseIdleConnections()
	}
	for {
		moved, err := g.approach(ctx, first, to)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errNoQuorum):
			g.disagree(err)
			err = retry.Sleep(ctx, g.options.Poll)
		case err == nil:
			if g.agree(); !moved {
				err = retry.Sleep(ctx, g.options.Poll)
			}
		}
		if err != nil {
			return err
		}
	}
}

// approach moves the chain some blocks towards the highest block that a quorum has, or back
// to a common block. It returns whether the chain moved.
func (g *Group) approach(ctx context.Context, first uint64, to Chain) (moved bool, err error) {
	heads := g.ask(ctx, g.many, func(ctx context.Context, m *member) (chain.Ref, error) { return m.Head(ctx) })
	target, agreed, err := g.head(ctx, heads)
	if err != nil {
		return false, err
	}
	g.elect(target, len(agreed))
	lowest, head, ok, err := to.Held(ctx)
	if err != nil {
		return false, err
	}
	next, last := first, (*chain.Ref)(nil)
	if ok {
		next, last = head.Number+1, &head
	}
	switch {
	case target.Number >= next:
		// A few blocks at a time: they are in memory until they are proven.
		if until := next + uint64(g.options.Parallel) - 1; until < target.Number {
			target.Number = until
			if target.Hash, agreed, err = g.at(ctx, until); err != nil {
				return false, err
			}
		}
		err := g.bring(ctx, agreed, next, target, to, last)
		if errors.Is(err, errForked) {
			err = g.retreat(ctx, head.Number, to)
		}
		return err == nil, err
	case !ok || target.Number < lowest.Number:
		return false, nil
	}
	hash, err := to.Hash(ctx, target.Number)
	if err != nil || hash == target.Hash {
		return false, err
	}
	return true, g.retreat(ctx, target.Number, to)
}

// bring appends the blocks from a number to target, which these nodes have. They are proven
// to be its ancestors first. It tries one node after the other, those last that did not send their blocks lately.
func (g *Group) bring(ctx context.Context, agreed []*member, from uint64, target chain.Ref, to Chain, head *chain.Ref) error {
	slices.SortStableFunc(agreed, func(a, b *member) int {
		switch {
		case a.withholds == b.withholds:
			return 0
		case b.withholds:
			return -1
		}
		return 1
	})
	err, refuted := errNoQuorum, make(map[*member]error)
	for _, m := range agreed {
		var blocks []*starknet.Block
		if blocks, err = g.proven(ctx, m, from, target); err == nil {
			err = g.confirm(ctx, agreed, m, blocks, target, refuted)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", errNoQuorum, err)
			continue
		}
		g.blame(refuted)
		if head != nil && common.Hash(blocks[0].Parent) != head.Hash {
			return errForked
		}
		for _, block := range blocks {
			if err := to.Append(ctx, block); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}

// proven is [member.proven]. A node that fails is not asked for a while.
func (g *Group) proven(ctx context.Context, m *member, from uint64, target chain.Ref) ([]*starknet.Block, error) {
	blocks, err := m.proven(ctx, from, target)
	if ctx.Err() != nil {
		return blocks, err
	}
	if m.withholds = err != nil; m.withholds {
		m.record.failed(err, errors.Is(err, errContradiction))
		m.options.Logger.Warn("a node that agrees does not send its blocks", "from", from, "to", target.Number, "error", err)
		g.rest(m)
	}
	return blocks, err
}

// proven fetches the blocks from a number to target, and checks that they are its ancestors.
func (m *member) proven(ctx context.Context, from uint64, target chain.Ref) ([]*starknet.Block, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	blocks := make([]*starknet.Block, target.Number-from+1)
	group, ctx := errgroup.WithContext(ctx)
	for i := range blocks {
		group.Go(func() (err error) {
			blocks[i], err = m.Block(ctx, from+uint64(i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	want := target.Hash
	for _, block := range slices.Backward(blocks) {
		if common.Hash(block.Hash) != want {
			return nil, fmt.Errorf("%w: its block %d is %s, expected %s, an ancestor of the agreed block %s", errContradiction, block.Number, block.Hash, want, target)
		}
		want = common.Hash(block.Parent)
	}
	return blocks, nil
}

// retreat reverts the blocks above the highest one that a quorum has, too.
func (g *Group) retreat(ctx context.Context, top uint64, to Chain) error {
	first, head, _, err := to.Held(ctx)
	if err != nil {
		return err
	}
	hash := func(ctx context.Context, number uint64) (common.Hash, error) {
		hash, _, err := g.at(ctx, number)
		return hash, err
	}
	s := forkSearch{hash, to}
	fork, err := s.run(ctx, first.Number, min(top, head.Number))
	if err != nil {
		return err
	}
	if fork == head { // the nodes' chain has changed meanwhile
		return fmt.Errorf("%w: about the parent of the block after %s", errNoQuorum, head)
	}
	g.options.Logger.Info("the nodes' chain was reorganized", "fork", fork.Number, "hash", fork.Hash, "head", head.Number, "depth", head.Number-fork.Number)
	return to.Revert(ctx, fork)
}

// L1Accepted fetches the number of the latest block, up to one with the number most, that a quorum of the
// nodes knows to be accepted on layer 1. Nodes whose blocks do not fit are not counted.
func (g *Group) L1Accepted(ctx context.Context, most uint64, fits func(chain.Ref) error) (number uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, voteTime)
	defer cancel()
	numbers := make([]uint64, len(g.members))
	failed := make([]error, len(g.members))
	var asking sync.WaitGroup
	for i, m := range g.members {
		asking.Go(func() { numbers[i], failed[i] = m.Node.L1Accepted(ctx, most, fits) })
	}
	asking.Wait()
	var known []uint64
	for i, number := range numbers {
		if failed[i] == nil {
			known = append(known, number)
		}
	}
	if len(known) < g.quorum {
		return 0, fmt.Errorf("%w: %w", errNoQuorum, errors.Join(failed...))
	}
	slices.Sort(known)
	return known[len(known)-g.quorum], nil
}
