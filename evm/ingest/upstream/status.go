package upstream

import (
	"slices"
	"time"

	"ashlar/chain"
)

// Status is the state of a pursuit.
type Status struct {
	// Sync is the progress towards a head; nil if the chain has caught up.
	Sync *Sync
	// Problem says why the best head is not followed; empty if it is.
	Problem string
	// Best is the highest head of the nodes that answer as they should, or of all nodes
	// if none does. 0 if none has named one.
	Best uint64
	// Reached means that at least one node answers as it should. With a quorum, that as
	// many agree; Best is then their head.
	Reached   bool
	Agreement *Agreement // nil without a quorum
	Nodes     []NodeStatus
}

// Sync is the progress of a chain, in block numbers.
type Sync struct {
	Starting uint64 // the head at the start
	Current  uint64 // the head now
	Highest  uint64 // the head that a node claims
}

// NodeStatus is the state of a node.
type NodeStatus struct {
	Name string
	Head chain.Ref // last reported
	Used bool      // its blocks are used, or would be
	Why  string    // why it is not used
	// Differs says how it differs from the nodes that agree; empty if it does not.
	Differs string
	Counts  Counts
	Latency time.Duration // of its last answer about its head; 0 before the first
}

// Behind is the number of missing blocks above which a sync is reported: one or two are
// always in transit.
const Behind = 4

// Status returns the current state. It is safe for concurrent use.
func (p *Pursuit) Status() Status {
	head := p.follower.Forkchoice().Head.Ref()
	p.mu.Lock()
	defer p.mu.Unlock()
	status := Status{Problem: p.problem}
	if p.under != nil && p.under.head.Number > head.Number+Behind {
		status.Sync = &Sync{Starting: min(p.under.starting, head.Number), Current: head.Number, Highest: p.under.head.Number}
	}
	now, used := time.Now(), false
	for _, c := range p.nodes {
		n := NodeStatus{Name: c.name, Head: c.forkchoice.Head, Used: c.reachable && !now.Before(c.until), Why: c.why, Differs: c.differs, Counts: c.counts, Latency: c.latency}
		used = used || n.Used
		if n.Differs != "" {
			n.Used = false
			if n.Why == "" {
				n.Why = n.Differs
			}
		}
		switch sound := c.reachable && c.why == ""; {
		case sound && !status.Reached:
			status.Reached, status.Best = true, n.Head.Number
		case sound == status.Reached:
			status.Best = max(status.Best, n.Head.Number)
		}
		status.Nodes = append(status.Nodes, n)
	}
	if status.Problem == "" && !used {
		status.Problem = "no upstream is usable"
		if !slices.ContainsFunc(p.nodes, func(c *candidate) bool { return c.reachable || c.why != "" }) {
			status.Problem = "no upstream has answered yet"
		}
	}
	if p.agreement.Quorum > 1 {
		agreement := p.agreement
		status.Agreement, status.Reached, status.Best = &agreement, agreement.Since.IsZero(), p.agreedHead
	}
	return status
}
