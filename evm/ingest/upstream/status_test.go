package upstream_test

import (
	"context"
	"testing"

	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
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
