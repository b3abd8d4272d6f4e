package upstream

import (
	"time"

	"ashlar/chain"
)

// Status is how a pursuit stands.
type Status struct {
	// Sync is how far the chain is on its way to a head; nil where there is nothing to
	// catch up with.
	Sync *Sync
	// Problem says why the best head is not followed; empty where it is.
	Problem string
	Nodes   []NodeStatus
}

// Sync is how far a chain is on its way.
type Sync struct {
	Starting uint64 // the head when it began
	Current  uint64 // the head now
	Highest  uint64 // the head that a node tells of
}

// NodeStatus is what is known of a node.
type NodeStatus struct {
	Name   string
	Head   chain.Ref // that it told last
	Used   bool      // its blocks are or would be used
	Why    string    // it is not used
	Counts Counts
}

// behind is how many blocks a chain lies back before that is worth a word: one or
// two are always under way.
const behind = 4

// Status may be called at any time, from many goroutines at once.
func (p *Pursuit) Status() Status {
	head := p.follower.Standing().Head.Ref()
	p.mu.Lock()
	defer p.mu.Unlock()
	status := Status{Problem: p.problem}
	if p.under != nil && p.under.head.Number > head.Number+behind {
		status.Sync = &Sync{Starting: min(p.under.starting, head.Number), Current: head.Number, Highest: p.under.head.Number}
	}
	now, used := time.Now(), false
	for _, c := range p.nodes {
		n := NodeStatus{Name: c.name, Head: c.standing.Head, Used: c.reachable && !now.Before(c.until), Why: c.why, Counts: c.counts}
		used = used || n.Used
		status.Nodes = append(status.Nodes, n)
	}
	if status.Problem == "" && !used {
		status.Problem = "no upstream can be used"
	}
	return status
}
