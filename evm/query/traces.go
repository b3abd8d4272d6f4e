package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"ashlar/evm/archive"
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
)

// TraceFilter selects traces by the addresses that take part in them.
type TraceFilter struct {
	From, To uint64 // block range, inclusive

	// Senders and Receivers are the accepted addresses; empty accepts any.
	Senders, Receivers []common.Address
	// Both means that a trace must match both lists. Otherwise one list is enough.
	Both bool

	Skip uint64 // the first matching traces are left out,
	Max  uint64 // and so are those after this many more
}

// participants returns the sets of participants of which a trace must have one each; none if
// the filter accepts any trace.
func (f *TraceFilter) participants() [][]archive.Participant {
	senders, receivers := participants(f.Senders, archive.RoleSender), participants(f.Receivers, archive.RoleReceiver, archive.RoleRewarded)
	if f.Both && len(senders) > 0 && len(receivers) > 0 {
		return [][]archive.Participant{senders, receivers}
	}
	if either := append(senders, receivers...); len(either) > 0 {
		return [][]archive.Participant{either}
	}
	return nil
}

// participants returns each of the addresses in each of the roles.
func participants(addresses []common.Address, roles ...archive.Role) (all []archive.Participant) {
	for _, address := range sortedSet(addresses, common.Address.Cmp) {
		for _, role := range roles {
			all = append(all, archive.ParticipantOf(address, role))
		}
	}
	return all
}

// TooManyTraces means that more traces match than the limit allows.
type TooManyTraces struct {
	Limit int
	// If Fits, From and To are the longest range from the filter's first block on that has
	// at most Limit traces.
	From, To uint64
	Fits     bool
}

func (e *TooManyTraces) Error() string {
	return fmt.Sprintf("query returned more than %d results", e.Limit)
}

// BlockTraces are traces of a block, by their ascending positions.
type BlockTraces struct {
	Number    uint64
	Positions []uint32
}

// HasTraces reports whether there is a trace index up to the head of the view, which the
// methods below need.
func (v *View) HasTraces() bool { return v.history.HasTraces() && !v.remote }

// FindTraces returns the traces that a filter selects, in the order of the chain. If they
// are more than limit, it returns a *TooManyTraces. Nothing is executed: the traces are those
// of the trace index. The filter's blocks must not be above the view's head.
func (v *View) FindTraces(ctx context.Context, filter *TraceFilter, limit int) (found []BlockTraces, err error) {
	if filter.To > v.head.Number {
		return nil, ErrUnknownBlock
	}
	if err := v.history.CheckTraces(filter.From); err != nil {
		return nil, err
	}
	found, err = v.findTraces(ctx, filter, limit)
	if pruned := v.history.CheckTraces(filter.From); pruned != nil { // rows may have been removed meanwhile
		return nil, pruned
	}
	return found, err
}

func (v *View) findTraces(ctx context.Context, filter *TraceFilter, limit int) (found []BlockTraces, err error) {
	from, err := v.tracesOf(ctx, filter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	skip, left, total := filter.Skip, filter.Max, 0
	for block := filter.From; block <= filter.To && left > 0; block++ {
		at, positions, ok, err := from.Next(block, nil)
		if !ok || err != nil {
			return found, err
		}
		block = at
		skipped := min(skip, uint64(len(positions)))
		skip -= skipped
		positions = positions[skipped:]
		positions = positions[:min(left, uint64(len(positions)))]
		left -= uint64(len(positions))
		if total += len(positions); total > limit {
			tooMany := &TooManyTraces{Limit: limit, From: filter.From}
			if block > filter.From && filter.Skip == 0 {
				tooMany.To, tooMany.Fits = block-1, true
			}
			return nil, tooMany
		}
		if len(positions) > 0 {
			found = append(found, BlockTraces{block, positions})
		}
	}
	return found, nil
}

// tracesOf returns the traces that match a filter, without its limits.
func (v *View) tracesOf(ctx context.Context, filter *TraceFilter) (candidates, error) {
	if sets := filter.participants(); len(sets) > 0 {
		return postings.Intersect(v.scanTraces(ctx), v.participantsAhead(ctx), sets, filter.From, filter.To)
	}
	return &allTraces{ctx: ctx, view: v, to: filter.To}, nil
}

// scanTraces returns how to read the view's postings of traces.
func (v *View) scanTraces(ctx context.Context) postings.Scan[archive.Participant] {
	return func(who archive.Participant, from, to uint64) postings.Postings {
		return v.history.TracePostings(ctx, who, from, min(to, v.head.Number))
	}
}

// Counts of traces are read ahead for so many blocks at first, then for twice as many, up to mostCounts.
const (
	firstCounts = 8
	mostCounts  = 64
)

// allTraces iterates over all traces, as counted in the trace index.
type allTraces struct {
	ctx   context.Context
	view  *View
	to    uint64
	ahead uint64 // the first block that is not read ahead
	most  uint64 // blocks to read ahead next; 0: firstCounts
}

// readAhead reads the counts of a block and of those after it, if that has not been done.
func (a *allTraces) readAhead(block uint64) {
	if block < a.ahead {
		return
	}
	a.most = max(a.most, firstCounts)
	a.ahead = block + a.most
	a.view.readCountsAhead(a.ctx, block, min(a.to, a.ahead-1))
	a.most = min(2*a.most, mostCounts)
}

func (a *allTraces) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	for ; block <= a.to; block++ {
		a.readAhead(block)
		counts, err := a.view.TraceCounts(a.ctx, block)
		if err != nil {
			return 0, dst, false, err
		}
		if counts.Total() == 0 {
			continue
		}
		for position := range uint32(counts.Total()) {
			dst = append(dst, position)
		}
		return block, dst, true, nil
	}
	return 0, dst, false, nil
}

func (a *allTraces) Close() error { return nil }

// TraceCounts returns how many traces a block of the view has.
func (v *View) TraceCounts(ctx context.Context, number uint64) (*archive.TraceCounts, error) {
	if number > v.head.Number {
		return nil, ErrUnknownBlock
	}
	return v.history.TraceCounts(ctx, number)
}

// BlockTransactions are transactions of a block, by their ascending indices.
type BlockTransactions struct {
	Number  uint64
	Indices []int
}

// TransactionsBefore returns the transactions in which an address takes part, in blocks up to
// a number, newest block first. It ends with the block that makes them size or more. more says
// whether there are older ones, or may be some before the first block with traces. Without any
// transactions from that block on, the error is a [*archive.Pruned].
func (v *View) TransactionsBefore(ctx context.Context, address common.Address, last uint64, size int) (found []BlockTransactions, more bool, err error) {
	roles := []*lastTraces{{who: archive.ParticipantOf(address, archive.RoleSender)}, {who: archive.ParticipantOf(address, archive.RoleReceiver)}}
	next, total := min(last, v.head.Number), 0
	for {
		var block uint64
		var ok bool
		for _, r := range roles {
			if err := r.seek(ctx, v, next); err != nil {
				return nil, false, err
			}
			if r.ok {
				block, ok = max(block, r.block), true
			}
		}
		if v.history.CheckTraces(block) != nil { // the window has moved past it: others below it may be missing
			ok = false
		}
		if pruned := v.history.CheckTraces(0); pruned != nil && !ok {
			if len(found) == 0 {
				return nil, false, pruned
			}
			return found, true, nil
		}
		if !ok || total >= size {
			return found, ok, nil
		}
		var positions []uint32
		for _, r := range roles {
			if r.ok && r.block == block {
				positions = append(positions, r.positions...)
			}
		}
		transactions, err := v.transactionsWith(ctx, block, positions)
		if err != nil {
			return nil, false, err
		}
		found = append(found, transactions)
		total += len(transactions.Indices)
		if block == 0 {
			return found, false, nil
		}
		next = block - 1
	}
}

// lastTraces are the traces of a participant in the last block up to a number that has any.
type lastTraces struct {
	who       archive.Participant
	sought    bool
	ok        bool // there is such a block
	block     uint64
	positions []uint32
}

// seek moves down to the last block up to a number.
func (l *lastTraces) seek(ctx context.Context, v *View, at uint64) (err error) {
	if l.sought && (!l.ok || l.block <= at) {
		return nil
	}
	l.sought = true
	l.block, l.positions, l.ok, err = v.history.LastTraces(ctx, l.who, at, l.positions[:0])
	return err
}

// TransactionsAfter is TransactionsBefore for blocks from a number on, oldest block first.
// more says whether there are newer ones. If that block is before the first one with traces,
// the error is a [*archive.Pruned].
func (v *View) TransactionsAfter(ctx context.Context, address common.Address, first uint64, size int) (found []BlockTransactions, more bool, err error) {
	if first > v.head.Number {
		return nil, false, nil
	}
	if err := v.history.CheckTraces(first); err != nil {
		return nil, false, err
	}
	found, more, err = v.transactionsAfter(ctx, address, first, size)
	if pruned := v.history.CheckTraces(first); pruned != nil { // rows may have been removed meanwhile
		return nil, false, pruned
	}
	return found, more, err
}

func (v *View) transactionsAfter(ctx context.Context, address common.Address, first uint64, size int) (found []BlockTransactions, more bool, err error) {
	either := participants([]common.Address{address}, archive.RoleSender, archive.RoleReceiver)
	from, err := postings.Intersect(v.scanTraces(ctx), v.participantsAhead(ctx), [][]archive.Participant{either}, first, v.head.Number)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for total := 0; ; first++ {
		block, positions, ok, err := from.Next(first, nil)
		if !ok || err != nil || total >= size {
			return found, ok, err
		}
		transactions, err := v.transactionsWith(ctx, block, positions)
		if err != nil {
			return nil, false, err
		}
		found = append(found, transactions)
		total += len(transactions.Indices)
		first = block
	}
}

// transactionsWith returns the transactions of a block that have traces at positions.
func (v *View) transactionsWith(ctx context.Context, block uint64, positions []uint32) (BlockTransactions, error) {
	counts, err := v.TraceCounts(ctx, block)
	if err != nil {
		return BlockTransactions{}, err
	}
	indices := make([]int, 0, len(positions))
	for _, position := range positions {
		index := sort.SearchInts(counts.Ends, int(position)+1)
		if index == len(counts.Ends) {
			return BlockTransactions{}, fmt.Errorf("%w: block %d: the trace index has a trace %d of no transaction", archive.ErrCorrupt, block, position)
		}
		indices = append(indices, index)
	}
	slices.Sort(indices)
	return BlockTransactions{block, slices.Compact(indices)}, nil
}

// Creation returns the last trace in the view that creates a contract at an address for good.
// ok is false if there is none. If it may be in a block before the trace index, Creation
// returns a [*archive.Pruned].
func (v *View) Creation(ctx context.Context, address common.Address) (number uint64, position uint32, ok bool, err error) {
	who := archive.ParticipantOf(address, archive.RoleCreated)
	number, positions, ok, err := v.history.LastTraces(ctx, who, v.head.Number, nil)
	if err != nil {
		return 0, 0, false, err
	}
	if !ok {
		return 0, 0, false, v.history.CheckTraces(v.history.Extent().State)
	}
	return number, positions[len(positions)-1], true, nil
}

// AllTraces is the Max of a filter without one.
const AllTraces = math.MaxUint64
