package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ashlar/chain"
	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/common"
)

// Agreement is whether as many nodes agree on a head as must.
type Agreement struct {
	Quorum int       // nodes that must agree
	Nodes  int       // nodes that agreed on the last head; 0 if there is no agreement now
	Since  time.Time // since when there is no agreement; zero if there is
}

// vote is the hash that a node has at a number; zero if it has not that many blocks, or did
// not answer.
type vote struct {
	choice
	hash common.Hash
}

// agree returns the nodes that have the highest block on which a quorum of them agrees,
// with this block as their head, and with the safe and finalized blocks of the quorum. It
// returns none if there is no such block. again says that the state of a node has changed, or
// that a slow node was not waited for.
//
// A head is compared where the nodes' chains can be: at the number of each node's head, from
// the highest that a quorum has downwards. A node can lie about its own chain only, so with
// a quorum of two a single node cannot make anything visible.
func (p *Pursuit) agree(ctx context.Context, choices []choice) (agreed []choice, again bool) {
	if len(choices) < p.config.Quorum {
		p.disagree(fmt.Sprintf("%d of %d nodes can be used, %d must agree", len(choices), len(p.nodes), p.config.Quorum))
		return nil, false
	}
	heads := make([]uint64, len(choices))
	for i, c := range choices {
		heads[i] = c.forkchoice.Head.Number
	}
	var first string // what the nodes have where they should agree
	numbers, ours := chain.Heights(heads, p.config.Quorum), p.follower.Forkchoice().Head.Ref().Number
	for patient, slow := false, true; slow; patient = true {
		slow = false
		for i, number := range numbers {
			// Slow nodes are not waited for while the others may agree on a lower block that is new.
			wait := patient || i == len(numbers)-1 || numbers[i+1] <= ours
			votes, changed, missing := p.votes(ctx, choices, number, wait)
			again, slow = again || changed || missing, slow || missing
			if ctx.Err() != nil {
				return nil, false
			}
			if missing && p.more(choices) {
				return nil, true
			}
			head, ok := winner(votes, p.config.Quorum)
			if ok {
				agreed = elect(votes, chain.Ref{Number: number, Hash: head}, p.config.Quorum)
				p.noteAgreement(votes, head, number, len(agreed))
				return agreed, again
			}
			if first == "" && !missing {
				first = describe(votes, number)
			}
		}
	}
	p.disagree(fmt.Sprintf("no agreement: %d nodes must have the same block, %s", p.config.Quorum, first))
	return nil, again
}

// votes asks all nodes which block they have at a number. Nodes that take much longer than
// a quorum are not waited for. If patient is false, neither are nodes without which there is no
// quorum: missing then says that there is none. Meanwhile a node that is behind votes when it has
// got there, and any other when the block becomes its head. The vote ends when a further node can be
// used. changed says that the state of a node has changed.
func (p *Pursuit) votes(ctx context.Context, choices []choice, number uint64, patient bool) (votes []vote, changed, missing bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		i    int
		hash common.Hash
		err  error
	}
	answers, open := make(chan answer, len(choices)), 0
	votes = make([]vote, len(choices))
	asked := make([]bool, len(choices))
	ask := func(i int) { // a node that is not behind; only once if the block is below its head
		switch head := votes[i].forkchoice.Head; {
		case head.Number == number:
			votes[i].hash = head.Hash
		case head.Number > number && !asked[i]:
			asked[i] = true
			open++
			from := votes[i].node
			go func() { // ends with the request, at the latest when ctx is canceled
				hash, err := from.HashAt(ctx, number)
				answers <- answer{i, hash, err}
			}()
		}
	}
	for i, c := range choices {
		votes[i].choice = c
		ask(i)
	}
	var late <-chan time.Time
	if !patient {
		late = time.After(p.config.Pace.Poll)
	}
	for open > 0 {
		if _, ok := winner(votes, p.config.Quorum); ok && late == nil {
			late = time.After(p.config.Pace.Poll)
		}
		select {
		case a := <-answers:
			open--
			if a.err != nil && ctx.Err() == nil {
				p.blame(votes[a.i].candidate, answered(a.err), true)
				changed = true
			} else if a.err == nil {
				votes[a.i].hash = a.hash
			}
		case <-p.changed:
			changed = true
			for i := range votes {
				if votes[i].hash == (common.Hash{}) && p.moved(&votes[i].choice) {
					ask(i)
				}
			}
			if p.more(choices) {
				_, ok := winner(votes, p.config.Quorum)
				return votes, changed, !ok
			}
		case <-late:
			_, ok := winner(votes, p.config.Quorum)
			return votes, changed, !ok
		}
	}
	return votes, changed, false
}

// more says whether other nodes than those of choices can be used, too.
func (p *Pursuit) more(choices []choice) bool {
	now, _ := p.choices(time.Now())
	return slices.ContainsFunc(now, func(c choice) bool {
		return !slices.ContainsFunc(choices, func(known choice) bool { return known.candidate == c.candidate })
	})
}

// moved updates what a node claims. It returns false if the node cannot be used now.
func (p *Pursuit) moved(c *choice) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.reachable || time.Now().Before(c.until) {
		return false
	}
	c.forkchoice = c.candidate.forkchoice
	return true
}

// winner returns the only block for which a quorum voted.
func winner(votes []vote, quorum int) (hash common.Hash, ok bool) {
	hashes := make([]common.Hash, len(votes))
	for i, v := range votes {
		hashes[i] = v.hash
	}
	return chain.Elected(hashes, quorum)
}

// elect returns the nodes that voted for a head, with the claims of the quorum.
func elect(votes []vote, head chain.Ref, quorum int) (agreed []choice) {
	var safe, finalized []chain.Ref
	for _, v := range votes {
		if v.hash == head.Hash {
			agreed = append(agreed, v.choice)
			safe, finalized = append(safe, v.forkchoice.Safe), append(finalized, v.forkchoice.Finalized)
		}
	}
	claims := node.Forkchoice{Head: head, Safe: chain.Claimed(safe, quorum), Finalized: chain.Claimed(finalized, quorum)}
	for i := range agreed {
		agreed[i].forkchoice = claims
	}
	return agreed
}

// describe says which block each node has at a number.
func describe(votes []vote, number uint64) string {
	var each []string
	for _, v := range votes {
		if v.hash != (common.Hash{}) {
			each = append(each, fmt.Sprintf("%s at %s", v.hash.TerminalString(), v.name))
		}
	}
	return fmt.Sprintf("but block %d is %s", number, strings.Join(each, ", "))
}

// noteAgreement records which nodes agree on a block, and which have another one.
func (p *Pursuit) noteAgreement(votes []vote, head common.Hash, number uint64, nodes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.agreement.Since.IsZero() {
		p.config.Log.Info("upstreams agree again", "nodes", nodes, "head", number, "after", time.Since(p.agreement.Since).Round(time.Millisecond))
		p.problem = ""
	}
	p.agreement = Agreement{Quorum: p.config.Quorum, Nodes: nodes}
	p.agreedHead = number
	for _, v := range votes {
		switch {
		case v.hash == head:
			v.candidate.differs = ""
		case v.hash != (common.Hash{}):
			if v.candidate.differs == "" {
				v.log.Warn("upstream differs from the others", "number", number, "hash", v.hash, "agreed", head, "nodes", nodes)
			}
			v.candidate.differs = fmt.Sprintf("its block %d is %s, %d other nodes have %s", number, v.hash.TerminalString(), nodes, head.TerminalString())
		}
	}
}

// disagree records that there is no agreement, and why.
func (p *Pursuit) disagree(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agreement.Since.IsZero() {
		p.config.Log.Warn("upstreams do not agree; the head stays", "because", why)
		p.agreement.Since = time.Now()
	}
	p.agreement.Nodes, p.problem = 0, why
}

// bringAgreed imports the blocks up to a head on which a quorum agrees, from one of its
// nodes. Every block is proven to be an ancestor of the head before it is executed, since
// the nodes vouched for no other.
func (p *Pursuit) bringAgreed(ctx context.Context, c choice) error {
	s := &Supplier{p}
	return s.supply(ctx, c.candidate, Target{
		Hash: c.forkchoice.Head.Hash, Finalized: c.forkchoice.Finalized.Hash,
		Shown: func(ctx context.Context, block chain.Ref) error { return p.follower.Advance(ctx, p.config.Log, block) },
	})
}
