package node

import (
	"cmp"
	"time"

	"ashlar/chain"
)

// Agreement is whether as many nodes of a group agree as must.
type Agreement struct {
	Head    chain.Ref // last block on which they agreed
	Nodes   int       // that agreed on it; 0 if there is no agreement now
	Since   time.Time // since when there is no agreement; zero if there is
	Problem string    // why there is none
}

// elect records the block on which nodes agree. It is not an agreement until one of them has sent
// the blocks up to it.
func (g *Group) elect(head chain.Ref, nodes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.agreement.Head, g.voters = head, nodes
}

// agree records that the nodes agree on the block of the last call of elect, and that the chain
// is there or closer to it.
func (g *Group) agree() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := &g.agreement
	if since := now.Since; !since.IsZero() {
		g.options.Logger.Info("the nodes agree again", "nodes", g.voters, "head", now.Head.Number, "after", time.Since(since).Round(time.Millisecond))
	}
	now.Nodes, now.Since, now.Problem = g.voters, time.Time{}, ""
}

// disagree records that there is no agreement, and why.
func (g *Group) disagree(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.agreement.Since.IsZero() {
		g.options.Logger.Warn("the nodes do not agree; the head stays", "because", why)
		g.agreement.Since = time.Now()
	}
	g.agreement.Nodes, g.agreement.Problem = 0, why.Error()
}

// GroupStatus is the status of a group.
type GroupStatus struct {
	Agreement
	Nodes   []Status // whose problem is also why a node had no vote
	Differs []string // of each node, what it has where the others agree; empty if it agrees
}

// Status returns the current status.
func (g *Group) Status() GroupStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GroupStatus{Agreement: g.agreement}
	for _, m := range g.members {
		status := m.Node.Status()
		status.Problem = cmp.Or(status.Problem, m.voteless)
		s.Nodes = append(s.Nodes, status)
		s.Differs = append(s.Differs, m.differs)
	}
	return s
}
