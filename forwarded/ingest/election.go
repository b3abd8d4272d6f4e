package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// newElection returns the election of a follower's nodes.
func (f *Follower) newElection() *upstream.Election {
	return upstream.NewElection(upstream.ElectionConfig{
		AskEach: f.config.Pool.AskEach,
		Question: func(number uint64) upstream.Call {
			return upstream.Call{
				Method: "eth_getBlockByNumber", Params: fmt.Appendf(nil, `["%#x",false]`, number), Needs: number, History: upstream.Blocks, About: number,
				Check: func(result json.RawMessage) error { return f.checkNumber(result, number) },
			}
		},
		Hash: func(answer json.RawMessage) (common.Hash, error) {
			b, err := forwarded.DecodeBlock(answer)
			if b == nil || err != nil {
				return common.Hash{}, err
			}
			return b.Hash, nil
		},
	})
}

// elect returns the highest block that a quorum of the nodes has, and the heads of these
// nodes. It returns none if there is no such block. A node can lie about its own chain only,
// so with a quorum of two a single node cannot make up a head. With a quorum of one the
// highest head is elected. open says that there may be such a block when a slow node answers.
func (f *Follower) elect(ctx context.Context, nodes []upstream.Status) (elected chain.Ref, voters []upstream.Head, open bool) {
	if f.config.Quorum == 1 {
		for _, n := range nodes {
			voters = append(voters, n.Head)
		}
		return highest(voters), voters, false
	}
	var ours uint64
	if view := f.View(); view != nil {
		ours = view.Head().Number
	}
	elected, votes, open := f.election.Elect(ctx, nodes, f.config.Quorum, ours)
	for i, vote := range votes {
		if vote == elected.Hash {
			voters = append(voters, nodes[i].Head)
		}
	}
	return elected, voters, open
}

// highest returns the highest of some heads; of equals, the first.
func highest(heads []upstream.Head) chain.Ref {
	return slices.MaxFunc(heads, func(a, b upstream.Head) int { return cmp.Compare(a.Number, b.Number) }).Ref
}

// checkNumber returns why an answer is not a block with a number.
func (f *Follower) checkNumber(result json.RawMessage, number uint64) error {
	b, err := forwarded.DecodeBlock(result)
	if err == nil && b != nil && b.Number != number {
		return fmt.Errorf("%w: asked for block %d, it sent %s", upstream.ErrLie, number, b.Ref)
	}
	ref := chain.Ref{Number: number}
	if b != nil {
		ref = b.Ref
	}
	return f.check(result, ref)
}
