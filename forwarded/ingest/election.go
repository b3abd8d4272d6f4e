package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// voteTime is how long a node may take to name its block at a number.
const voteTime = 5 * time.Second

// elect returns the highest block that a quorum of the nodes has, and the heads of these
// nodes. It returns none if there is no such block. A node can lie about its own chain only,
// so with a quorum of two a single node cannot make up a head. With a quorum of one the
// highest head is elected.
func (f *Follower) elect(ctx context.Context, nodes []upstream.Status) (elected chain.Ref, voters []upstream.Head) {
	if f.config.Quorum == 1 {
		for _, n := range nodes {
			voters = append(voters, n.Head)
		}
		return highest(voters), voters
	}
	heights := make([]uint64, len(nodes))
	for i, n := range nodes {
		heights[i] = n.Head.Number
	}
	for _, number := range chain.Heights(heights, f.config.Quorum) {
		votes := f.votes(ctx, nodes, number)
		hash, ok := chain.Elected(votes, f.config.Quorum)
		if !ok {
			continue
		}
		for i, vote := range votes {
			if vote == hash {
				voters = append(voters, nodes[i].Head)
			}
		}
		return chain.Ref{Number: number, Hash: hash}, voters
	}
	return chain.Ref{}, nil
}

// highest returns the highest of some heads; of equals, the first.
func highest(heads []upstream.Head) chain.Ref {
	return slices.MaxFunc(heads, func(a, b upstream.Head) int { return cmp.Compare(a.Number, b.Number) }).Ref
}

// votes returns the hash that each node has at a number; zero if it has none, or does not say.
func (f *Follower) votes(ctx context.Context, nodes []upstream.Status, number uint64) []common.Hash {
	votes := make([]common.Hash, len(nodes))
	above := make(map[string]int) // nodes to be asked, with their places
	for i, n := range nodes {
		switch {
		case n.Head.Number == number:
			votes[i] = n.Head.Hash
		case n.Head.Number > number:
			above[n.Name] = i
		}
	}
	if len(above) == 0 {
		return votes
	}
	ctx, cancel := context.WithTimeout(ctx, voteTime)
	defer cancel()
	answers := f.config.Pool.AskEach(ctx, upstream.Call{
		Method: "eth_getBlockByNumber", Params: fmt.Appendf(nil, `["%#x",false]`, number), Needs: number, History: upstream.Blocks, About: number,
		Check: func(result json.RawMessage) error { return f.checkNumber(result, number) },
	})
	for _, answer := range answers {
		i, asked := above[answer.Node]
		if answer.Err != nil || !asked {
			continue
		}
		if b, err := forwarded.DecodeBlock(answer.Result); err == nil && b != nil {
			votes[i] = b.Hash
		}
	}
	return votes
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
