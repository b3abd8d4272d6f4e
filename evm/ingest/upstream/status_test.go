package upstream_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// deadNode answers nothing.
type deadNode struct{ *fakeNode }

func (deadNode) Identity(context.Context) (uint64, common.Hash, error) {
	return 0, common.Hash{}, errDropped
}

// Before the first answer no node is to blame, so the problem itself is the reason.
func TestProblemBeforeTheFirstAnswer(t *testing.T) {
	w := newWorld(t, 1)
	p := newFollower(t, ingest.DefaultDepths()).pursuit(t, quick(), nil, deadNode{newFakeNode("dead", w)})
	if problem := p.Status().Problem; problem != "no upstream has answered yet" {
		t.Errorf("before the first answer the problem is %q", problem)
	}
	stop := run(t, p.Run)
	defer stop()
	until(t, "the node's failure", func() bool { return p.Status().Nodes[0].Why == errDropped.Error() })
	if problem := p.Status().Problem; problem != "no upstream is usable" {
		t.Errorf("after a failure the problem is %q", problem)
	}
}

// boaster is a node that names a head far above all others, and has no blocks.
type boaster struct{ *fakeNode }

func (boaster) Forkchoice(context.Context) (node.Forkchoice, error) {
	return node.Forkchoice{Head: chain.Ref{Number: 100_000, Hash: common.Hash{9}}}, nil
}

func (boaster) Blocks(context.Context, uint64, int) ([]*types.Block, error) { return nil, errDropped }

// TestBestHead: the best head is the highest of the nodes whose blocks are used, in whatever order they are configured.
// Nodes with the same name are told apart.
func TestBestHead(t *testing.T) {
	w := newWorld(t, 2)
	low, high := newFakeNode("node", w), newFakeNode("node", w)
	high.head = w.grow(w.builder.Genesis, 7)
	low.head = w.at(high.head, 5)
	wrong := boaster{newFakeNode("node", w)}
	pace := quick()
	pace.Retry, pace.RetryMax = time.Hour, time.Hour
	for _, nodes := range [][]upstream.Node{{low, high, wrong}, {high, wrong, low}, {wrong, low, high}} {
		f := newFollower(t, ingest.DefaultDepths())
		p := f.pursuit(t, pace, nil, nodes...)
		stop := run(t, p.Run, f.Run)
		f.await(ref(high.head))
		until(t, "the best head", func() bool { status := p.Status(); return status.Reached && status.Best == 7 })
		stop()
		var names []string
		for _, n := range p.Status().Nodes {
			names = append(names, n.Name)
		}
		if want := []string{"node", "node (2)", "node (3)"}; !slices.Equal(names, want) {
			t.Errorf("the nodes are %q, want %q", names, want)
		}
	}
}
