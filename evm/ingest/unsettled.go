package ingest

import (
	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
)

// unsettledNodes are the trie nodes of blocks that are not settled, by their hashes. An import whose
// tries keep what they change asks for few of them, and as long as they keep all, for none: so
// nodes are entered into a map only when one is asked for. They are dropped all at once, in two
// generations.
//
//	blocks   7 8 9 | 10 11 12   settled up to 8: all stay
//	           old | young      settled up to 9: 7 to 9 are dropped, 13 begins a generation
//
// The zero value is empty.
type unsettledNodes struct {
	young, old generation
}

// reusedNodes is how large a map may be to be used again: some groups of blocks of an import.
const reusedNodes = 1 << 17

type generation struct {
	last   uint64                 // block
	added  [][]evm.Node           // of blocks
	mapped int                    // how many of these are in the map
	byHash map[common.Hash][]byte // empty or nil until one is asked for
}

// add adds the nodes that a block wrote, as [tries.Tries.Commit] returned them. Nothing else may use
// the list once the block is settled.
func (u *unsettledNodes) add(nodes []evm.Node, block uint64) {
	u.young.last = block
	u.young.added = append(u.young.added, nodes)
}

func (u *unsettledNodes) find(hash common.Hash) (blob []byte, ok bool) {
	if blob, ok = u.young.find(hash); !ok {
		blob, ok = u.old.find(hash)
	}
	return blob, ok
}

func (g *generation) find(hash common.Hash) (blob []byte, ok bool) {
	for _, nodes := range g.added[g.mapped:] {
		if g.byHash == nil {
			g.byHash = make(map[common.Hash][]byte)
		}
		for _, n := range nodes {
			if len(n.Blob) > 0 {
				g.byHash[n.Hash] = n.Blob
			}
		}
	}
	g.mapped = len(g.added)
	blob, ok = g.byHash[hash]
	return blob, ok
}

// settle drops the old generation if blocks up to its last one are settled, and releases its lists.
func (u *unsettledNodes) settle(number uint64) {
	if number < u.old.last {
		return
	}
	for _, nodes := range u.old.added {
		tries.Release(nodes)
	}
	free, added := u.old.byHash, u.old.added
	if len(free) > reusedNodes {
		free = nil
	}
	clear(free)
	clear(added)
	u.old, u.young = u.young, generation{byHash: free, added: added[:0]}
}
