package node

import (
	"errors"

	"ashlar/chain"
)

// errLate means that a node has not answered in the time that a vote takes.
var errLate = errors.New("it did not answer in time")

// exclude leaves a node alone for a while that has not voted, and records why.
func (g *Group) exclude(m *member, why error) {
	g.rest(m)
	if errors.Is(why, errLate) || errors.Is(why, ErrOtherChain) { // requests record their own errors
		m.record.failed(why, errors.Is(why, ErrOtherChain))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.voteless == "" {
		m.options.Logger.Warn("the node has no vote for now", "error", why)
	}
	m.voteless = why.Error()
}

// include records that nodes have voted.
func (g *Group) include(votes map[*member]chain.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := range votes {
		if m.voteless != "" {
			m.options.Logger.Info("the node has a vote again")
		}
		m.voteless = ""
	}
}
