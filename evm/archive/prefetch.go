package archive

import (
	"context"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// Wants collects rows that are going to be read, so that [Wants.Read] reads them side by side.
// In a store whose reads take no round trips, both do nothing. It belongs to one goroutine.
type Wants struct {
	history *History
	list    []kv.Want
}

// maxWants bounds what is prefetched at once.
const maxWants = 4096

// Wants returns an empty collection.
func (h *History) Wants() *Wants { return &Wants{history: h} }

// Ahead reports whether prefetching has a use.
func (h *History) Ahead() bool { return h.ahead != nil }

// Read reads the rows. It must be called once.
func (w *Wants) Read(ctx context.Context) {
	if len(w.list) > 0 {
		w.history.ahead.Prefetch(ctx, w.list)
	}
}

func (w *Wants) add(want kv.Want) {
	if w.history.ahead != nil && len(w.list) < maxWants {
		w.list = append(w.list, want)
	}
}

func (w *Wants) ofBlock(t *kv.Table, number uint64) {
	if w.history.ahead == nil || number > w.history.settled {
		return // rows of unsettled blocks are in memory
	}
	partition := rows.Chunk(number)
	w.add(kv.WantRow(t, partition[:], number))
}

// Header adds the header of a block.
func (w *Wants) Header(number uint64) {
	if !w.history.headerCache(number).Contains(number) {
		w.ofBlock(headers, number)
	}
}

// Body adds the body of a block.
func (w *Wants) Body(number uint64) { w.ofBlock(bodies, number) }

// Receipts adds the receipts of a block.
func (w *Wants) Receipts(number uint64) { w.ofBlock(receipts, number) }

// AccessList adds the access list of a block.
func (w *Wants) AccessList(number uint64) { w.ofBlock(accessLists, number) }

// Changes adds what the transactions of a block have changed.
func (w *Wants) Changes(number uint64) {
	if w.history.form.changes {
		w.ofBlock(txChanges, number)
	}
}

// Postings adds the positions of a log term in a range of blocks.
func (w *Wants) Postings(term postings.Term, from, to uint64) {
	w.add(kv.Want{Table: logPostings, Partition: term[:], From: from, To: to})
}

// TracePostings adds the positions of a participant's traces in a range of blocks.
func (w *Wants) TracePostings(who Participant, from, to uint64) {
	w.add(kv.Want{Table: tracePostings, Partition: who[:], From: max(from, w.history.firstTraced()), To: to})
}

// TraceCounts adds how many traces a block has.
func (w *Wants) TraceCounts(number uint64) { w.ofBlock(traceCounts, number) }

// Account adds an account as of a block.
func (w *Wants) Account(number uint64, address common.Hash) {
	w.add(kv.Want{Table: accounts, Partition: address[:], To: number, Newest: 1})
}

// Slot adds a slot as of a block.
func (w *Wants) Slot(number uint64, address, slot common.Hash) {
	if w.history.ahead == nil {
		return
	}
	partition := slotKey(address, slot)
	w.add(kv.Want{Table: slots, Partition: partition[:], To: number, Newest: 1})
}

// Code adds a contract's code.
func (w *Wants) Code(hash common.Hash) {
	if _, known := w.history.codes.Get(hash); !known {
		w.add(kv.WantRow(codes, hash[:], 0))
	}
}

// HasBranch reports whether the trie node at a path as of a block is one with nodes below, a branch or an extension. It is for nodes
// that were prefetched: an error is taken for no.
func (h *History) HasBranch(ctx context.Context, number uint64, owner common.Hash, path []byte) bool {
	row, _, err := h.rows.Newest(ctx, trieNodes, appendNodeKey(nil, owner, string(path)), number, nil)
	return err == nil && len(row) > 0 && row[0] != nodeLeaf
}

// Node adds a trie node as of a block, with the rows that a difference is made of.
func (w *Wants) Node(number uint64, owner common.Hash, path []byte) {
	if w.history.ahead != nil {
		w.add(kv.Want{Table: trieNodes, Partition: appendNodeKey(nil, owner, string(path)), To: number, Newest: maxSteps + 1})
	}
}
