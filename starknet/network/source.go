package network

import (
	"context"
	"errors"

	"ashlar/chain"
	"ashlar/family"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/node"
)

// source is what a network follows: a node, or several that must agree.
type source interface {
	Follow(ctx context.Context, first uint64, to node.Chain) error
	// L1Accepted fetches the number of the latest block, up to one with the number most, that is accepted
	// on layer 1. fits returns an error for a block of another chain; it is called by several goroutines.
	L1Accepted(ctx context.Context, most uint64, fits func(chain.Ref) error) (uint64, error)
	// head returns the last known head; zero if there is none.
	head() chain.Ref
	// status says how the nodes are. Behind is left to the caller.
	status() *family.SourceStatus
}

// newSource returns the source that the entries name.
func newSource(e *Entries, o node.Options) (source, error) {
	if e.Quorum > 1 {
		g, err := node.NewGroup(e.Source, e.Quorum, o)
		return agreeing{g, e.Quorum}, err
	}
	o.URL = e.Source[0]
	n, err := node.New(o)
	return single{n}, err
}

// single is one node.
type single struct{ *node.Node }

func (s single) head() chain.Ref { return s.Status().Head }

func (s single) status() *family.SourceStatus {
	now := s.Status()
	upstream := upstreamOf(now)
	return &family.SourceStatus{
		Problem: now.Problem, Best: now.Head.Number, Reached: now.Head != (chain.Ref{}) && now.Problem == "",
		Upstreams: []family.UpstreamStatus{upstream},
	}
}

func upstreamOf(n node.Status) family.UpstreamStatus {
	return family.UpstreamStatus{Name: n.Name, Head: n.Head.Number, Failures: n.Failures, Invalid: n.Invalid, Used: n.Problem == "", Why: n.Problem, Latency: n.Latency.Microseconds()}
}

// agreeing is several nodes of which a quorum must agree.
type agreeing struct {
	*node.Group
	quorum int
}

func (s agreeing) head() chain.Ref { return s.Status().Head }

func (s agreeing) status() *family.SourceStatus {
	now := s.Status()
	status := &family.SourceStatus{
		Problem: now.Problem, Best: now.Head.Number, Reached: now.Agreement.Nodes > 0,
		Agreement: &family.AgreementStatus{Quorum: s.quorum, Nodes: now.Agreement.Nodes},
	}
	if !now.Since.IsZero() {
		status.Agreement.Since = now.Since.Unix()
	}
	for i, n := range now.Nodes {
		upstream := upstreamOf(n)
		if upstream.Differs = now.Differs[i]; upstream.Differs != "" {
			upstream.Used, upstream.Why = false, upstream.Differs
		}
		status.Upstreams = append(status.Upstreams, upstream)
	}
	return status
}

// sourceStatus is how the network stands to its nodes while its newest block is head.
func (n *network) sourceStatus(head uint64) *family.SourceStatus {
	status := n.source.status()
	status.Behind = status.Best - min(status.Best, head)
	if stopped := n.stopped.Load(); stopped != nil {
		status.Problem = stopped.err.Error()
		for i := range status.Upstreams {
			u := &status.Upstreams[i]
			u.Used, u.Why = false, status.Problem
			if errors.Is(stopped.err, ingest.ErrTooDeep) {
				u.TooDeep = 1
			}
		}
	}
	return status
}
