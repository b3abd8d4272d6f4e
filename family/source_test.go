package family

import (
	"testing"

	"ashlar/chain"
	"ashlar/upstream"
)

// The best head is that of a node that can be used, and with a quorum no single node makes it up.
func TestSourceOf(t *testing.T) {
	used := func(head uint64) upstream.Status {
		return upstream.Status{Head: upstream.Head{Ref: chain.Ref{Number: head}}, Usable: true}
	}
	unused := func(head uint64) upstream.Status { n := used(head); n.Usable = false; return n }
	for name, test := range map[string]struct {
		nodes   []upstream.Status
		quorum  int
		best    uint64
		reached bool
	}{
		"no nodes":               {nil, 1, 0, false},
		"the highest":            {[]upstream.Status{used(3), used(5), used(4)}, 1, 5, true},
		"one that is not used":   {[]upstream.Status{used(3), unused(1 << 40), used(4)}, 1, 4, true},
		"none is used":           {[]upstream.Status{unused(3), unused(5)}, 1, 5, false},
		"a quorum has reached":   {[]upstream.Status{used(3), used(1 << 40), used(4)}, 2, 4, true},
		"fewer than the quorum":  {[]upstream.Status{unused(9), used(1 << 40), used(4)}, 3, 4, true},
		"a forwarded default":    {[]upstream.Status{used(3), used(5)}, 0, 5, true},
		"a quorum, none is used": {[]upstream.Status{unused(3), unused(5)}, 2, 3, false},
	} {
		source := SourceOf(test.nodes, test.quorum)
		if source.Best != test.best || source.Reached != test.reached || len(source.Upstreams) != len(test.nodes) {
			t.Errorf("%s: best %d, reached %t, %d nodes, want %d, %t", name, source.Best, source.Reached, len(source.Upstreams), test.best, test.reached)
		}
	}
}
