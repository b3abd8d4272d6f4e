package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// voteTime is how long a node may take to say which block it has.
const voteTime = 15 * time.Second

// head returns the highest block that a quorum of nodes with these heads has, and these
// nodes. Chains are compared at the number of each head that a quorum has reached.
func (g *Group) head(ctx context.Context, heads map[*member]chain.Ref) (chain.Ref, []*member, error) {
	var numbers []uint64
	for _, ref := range heads {
		numbers = append(numbers, ref.Number)
	}
	if len(numbers) < g.quorum {
		return chain.Ref{}, nil, fmt.Errorf("%w: %d of %d answer, %d must agree", errNoQuorum, len(numbers), len(g.members), g.quorum)
	}
	var why error
	for _, number := range chain.Heights(numbers, g.quorum) {
		hash, agreed, err := g.at(ctx, number)
		if err == nil {
			return chain.Ref{Number: number, Hash: hash}, agreed, nil
		}
		if why == nil {
			why = err
		}
	}
	return chain.Ref{}, nil, why
}

// at returns the block that a quorum of the nodes has at a number, and these nodes. The
// error is errNoQuorum if there is none.
func (g *Group) at(ctx context.Context, number uint64) (hash common.Hash, agreed []*member, err error) {
	votes := g.ask(ctx, g.decided, func(ctx context.Context, m *member) (chain.Ref, error) {
		hash, err := m.hash(ctx, number)
		if errors.Is(err, ErrNotFound) {
			return chain.Ref{}, nil // it is behind, which is no fault
		}
		return chain.Ref{Number: number, Hash: hash}, err
	})
	g.include(votes)
	hash, ok := chain.Elected(hashes(votes), g.quorum)
	if !ok {
		return common.Hash{}, nil, fmt.Errorf("%w: %d must have the same block, but block %d is %s", errNoQuorum, g.quorum, number, describe(g.members, votes))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		switch vote := votes[m].Hash; {
		case vote == hash:
			m.differs = ""
			agreed = append(agreed, m)
		case vote != common.Hash{}:
			if m.differs == "" {
				m.options.Logger.Warn("the node differs from the others", "number", number, "hash", vote, "agreed", hash)
			}
			m.differs = fmt.Sprintf("its block %d is %s, the others have %s", number, vote.TerminalString(), hash.TerminalString())
		}
	}
	return hash, agreed, nil
}

// hashes returns the hashes of the blocks that nodes have.
func hashes(votes map[*member]chain.Ref) (all []common.Hash) {
	for _, vote := range votes {
		all = append(all, vote.Hash)
	}
	return all
}

// many reports whether a quorum has answered.
func (g *Group) many(answers map[*member]chain.Ref) bool { return len(answers) >= g.quorum }

// decided reports whether a quorum has answered and the other nodes need not be waited for: a quorum has the same block, or too few
// have one yet. If two nodes contradict each other, the others decide.
func (g *Group) decided(votes map[*member]chain.Ref) bool {
	if _, ok := chain.Elected(hashes(votes), g.quorum); ok || !g.many(votes) {
		return ok
	}
	var first common.Hash
	for _, hash := range hashes(votes) {
		switch {
		case hash == common.Hash{}:
		case first == common.Hash{}:
			first = hash
		case hash != first:
			return false
		}
	}
	return true
}

// describe says which block each node has.
func describe(members []*member, votes map[*member]chain.Ref) string {
	var each []string
	for _, m := range members {
		if vote := votes[m]; vote.Hash != (common.Hash{}) {
			each = append(each, fmt.Sprintf("%s at %s", vote.Hash.TerminalString(), m.Status().Name))
		}
	}
	if len(each) == 0 {
		return "at none of them"
	}
	return strings.Join(each, ", ")
}

// ask asks all nodes the same. A node that fails is not asked for a while. Once the answers are
// enough, the other nodes are waited for no longer than the time between two polls.
func (g *Group) ask(caller context.Context, enough func(answers map[*member]chain.Ref) bool, question func(context.Context, *member) (chain.Ref, error)) map[*member]chain.Ref {
	ctx, cancel := context.WithTimeout(caller, voteTime)
	defer cancel()
	type answer struct {
		*member
		ref chain.Ref
		err error
	}
	answers, missing := make(chan answer, len(g.members)), make(map[*member]bool)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for _, m := range g.members {
		if time.Now().Before(m.resting) {
			continue
		}
		missing[m] = true
		asking.Go(func() {
			if !m.checked {
				if err := m.checkChainID(ctx); err != nil {
					answers <- answer{m, chain.Ref{}, err}
					return
				}
				m.checked = true
			}
			ref, err := question(ctx, m)
			answers <- answer{m, ref, err}
		})
	}
	votes := make(map[*member]chain.Ref)
	var late <-chan time.Time
	for len(missing) > 0 {
		select {
		case a := <-answers:
			delete(missing, a.member)
			switch {
			case a.err == nil:
				votes[a.member] = a.ref
			case errors.Is(a.err, ErrNotFound) || caller.Err() != nil:
			case errors.Is(a.err, context.DeadlineExceeded):
				g.exclude(a.member, errLate)
			default:
				g.exclude(a.member, a.err)
			}
		case <-late:
			for m := range missing {
				g.exclude(m, errLate)
			}
			return votes
		}
		if late == nil && enough(votes) {
			late = time.After(g.options.Poll)
		}
	}
	return votes
}
