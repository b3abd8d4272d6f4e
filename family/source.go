package family

import (
	"ashlar/chain"
	"ashlar/upstream"
)

// SourceOf returns how the nodes of a pool behave, of which a quorum must have the same head. Best is the highest
// number that so many of their heads have reached: a single node can name any number. Problem, Behind and Agreement
// are left to the caller.
func SourceOf(nodes []upstream.Status, quorum int) *SourceStatus {
	source := new(SourceStatus)
	var usable, all []uint64
	for i := range nodes {
		n := &nodes[i]
		all = append(all, n.Head.Number)
		if n.Usable {
			usable = append(usable, n.Head.Number)
		}
		source.Upstreams = append(source.Upstreams, UpstreamOf(n))
	}
	source.Reached = len(usable) > 0
	if !source.Reached {
		usable = all
	}
	if len(usable) > 0 {
		source.Best = chain.Heights(usable, max(1, min(quorum, len(usable))))[0]
	}
	return source
}
