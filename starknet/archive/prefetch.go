package archive

import (
	"context"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
)

// Wants collects rows that are going to be read, so that they are read side by side. In a
// store whose reads take no round trips, it does nothing. It is for use by one goroutine.
type Wants struct {
	reader *Reader
	list   []kv.Want
}

// maxWants bounds what is read at once.
const maxWants = 4096

// Ahead reports whether reading ahead has a use.
func (r *Reader) Ahead() bool { return r.ahead != nil }

// Wants returns an empty collection.
func (r *Reader) Wants() *Wants { return &Wants{reader: r} }

// Read reads the rows. It must be called once.
func (w *Wants) Read(ctx context.Context) {
	if len(w.list) > 0 {
		w.reader.ahead.Prefetch(ctx, w.list)
	}
}

func (w *Wants) add(want kv.Want) {
	if len(w.list) < maxWants {
		w.list = append(w.list, want)
	}
}

// ofBlock adds a row of a block. Those of unsettled blocks are in memory.
func (w *Wants) ofBlock(t *kv.Table, number, sort uint64) {
	if w.reader.ahead == nil || number > w.reader.settled {
		return
	}
	partition := rows.Chunk(number)
	w.add(kv.WantRow(t, partition[:], sort))
}

// Header adds the header of a block.
func (w *Wants) Header(number uint64) {
	if !w.reader.headers.Contains(number) {
		w.ofBlock(headers, number, number)
	}
}

// Transactions adds the transactions of a block.
func (w *Wants) Transactions(number uint64) { w.ofBlock(transactions, number, number) }

// Events adds the events at the ascending positions of a block.
func (w *Wants) Events(number uint64, positions ...uint32) {
	last := uint64(0)
	for i, position := range positions {
		group := uint64(position) / groupEvents
		if i == 0 || group != last {
			w.ofBlock(events, number, number<<groupBits|group)
		}
		last = group
	}
}

// EventRange adds consecutive events of a block, of which there is at least one.
func (w *Wants) EventRange(number, first, count uint64) {
	for group := first / groupEvents; group <= (first+count-1)/groupEvents && len(w.list) < maxWants; group++ {
		w.ofBlock(events, number, number<<groupBits|group)
	}
}

// Postings adds the occurrences of an event term in the blocks from to to.
func (w *Wants) Postings(term postings.Term, from, to uint64) {
	if w.reader.ahead != nil {
		w.add(kv.Want{Table: eventPostings, Partition: term[:], From: from, To: min(to, w.reader.span.Last.Number)})
	}
}
