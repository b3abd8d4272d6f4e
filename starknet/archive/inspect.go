package archive

import (
	"bytes"
	"context"
	"fmt"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"
)

// What is in this file shows an archive row by row, for whoever checks it.

// TableSet names the tables of a Starknet network.
type TableSet struct {
	Headers, Transactions, Events        *kv.Table // from which a block is read
	BlockHashes, TxHashes, EventPostings *kv.Table // which follow from those
}

// NamedTables returns the tables by name, where [Tables] lists them.
func NamedTables() TableSet {
	return TableSet{
		Headers: headers, Transactions: transactions, Events: events,
		BlockHashes: blockHashes, TxHashes: txHashes, EventPostings: eventPostings,
	}
}

// Own lists the tables from which a block is read.
func (t TableSet) Own() []*kv.Table { return []*kv.Table{t.Headers, t.Transactions, t.Events} }

// Derived lists the tables whose rows follow from those of Own.
func (t TableSet) Derived() []*kv.Table {
	return []*kv.Table{t.BlockHashes, t.TxHashes, t.EventPostings}
}

// DescribeKey names a row for people, its block aside.
func DescribeKey(t *kv.Table, partition []byte, sort uint64) string {
	position := sort & (1<<t.IndexBits - 1)
	switch {
	case t == headers || t == transactions:
		return fmt.Sprintf("block %d", sort) + misplaced(partition, sort)
	case t == events:
		block := t.BlockOf(sort)
		return fmt.Sprintf("block %d, events from %d on", block, position*groupEvents) + misplaced(partition, block)
	case t == blockHashes && len(partition) == rows.HashPrefixBytes:
		return fmt.Sprintf("a block hash that begins with %#x", partition)
	case t == txHashes && len(partition) == rows.HashPrefixBytes:
		return fmt.Sprintf("transaction %d, a hash that begins with %#x", position, partition)
	case t == eventPostings && len(partition) == len(postings.Term{}):
		return fmt.Sprintf("term %#x", partition)
	}
	return fmt.Sprintf("partition %#x, sort key %d: no key of this table", partition, sort)
}

// misplaced says where the row of a block is, unless that is where it belongs.
func misplaced(partition []byte, block uint64) string {
	if want := rows.Chunk(block); !bytes.Equal(partition, want[:]) {
		return fmt.Sprintf(" in the partition %#x, where its chunk is %#x", partition, want)
	}
	return ""
}

// OpenUnchecked is [Open] for whoever checks the archive: it reads no row, so that
// none can keep it from opening. Such an archive takes no blocks. Its span is nil
// where it has none.
func OpenUnchecked(ctx context.Context, store kv.Store) (*Archive, error) {
	a, span, err := openSpan(ctx, store)
	if err != nil {
		return nil, err
	}
	a.span.Store(span)
	return a, nil
}

// RowError says which row of a block cannot be read, or is not what the others say.
type RowError struct {
	Table *kv.Table
	Sort  uint64
	Err   error
}

func (e *RowError) Error() string { return e.Err.Error() }

func (e *RowError) Unwrap() error { return e.Err }

// Block reads all that is held of a block: transactions are without signatures.
// The error is a [*RowError]. Of what rows say that follows from others, only the
// numbers of transactions and events are looked at.
func (r *Reader) Block(ctx context.Context, number uint64) (*starknet.Block, error) {
	header, err := r.Header(ctx, number)
	if err != nil {
		return nil, &RowError{headers, number, err}
	}
	block := &starknet.Block{Header: header.Header}
	stored, err := r.Transactions(ctx, number, nil)
	if err != nil {
		return nil, &RowError{transactions, number, err}
	}
	block.Transactions = make([]starknet.Transaction, stored.Len())
	counts := make([]uint64, stored.Len()) // of events
	var total uint64
	for i := range block.Transactions {
		t, err := stored.Transaction(i)
		if err == nil && t.FirstEvent != total {
			err = fmt.Errorf("%w: the first event of transaction %d is %d, after %d events", rows.ErrCorrupt, i, t.FirstEvent, total)
		}
		if err != nil {
			return nil, &RowError{transactions, number, err}
		}
		block.Transactions[i], counts[i] = t.Transaction, t.EventCount
		total += t.EventCount
	}
	switch {
	case header.TransactionCount != uint64(stored.Len()):
		err := fmt.Errorf("%w: the header counts %d transactions, expected %d, which are held", rows.ErrCorrupt, header.TransactionCount, stored.Len())
		return nil, &RowError{headers, number, err}
	case header.EventCount != total && r.endsWithEvent(ctx, number, header.EventCount):
		err := fmt.Errorf("%w: the transactions count %d events, expected %d, which are held", rows.ErrCorrupt, total, header.EventCount)
		return nil, &RowError{transactions, number, err}
	case header.EventCount != total:
		err := fmt.Errorf("%w: the header counts %d events, expected %d, as the transactions do", rows.ErrCorrupt, header.EventCount, total)
		return nil, &RowError{headers, number, err}
	}
	return block, r.readEvents(ctx, block, counts)
}

// endsWithEvent says whether the rows of events hold that many of a block.
func (r *Reader) endsWithEvent(ctx context.Context, block, count uint64) bool {
	reader := r.Events(ctx)
	if count > 0 {
		if _, err := reader.Event(block, count-1); err != nil {
			return false
		}
	}
	_, err := reader.Event(block, count)
	return err != nil
}

// readEvents gives each transaction of a block as many events as it counts.
func (r *Reader) readEvents(ctx context.Context, block *starknet.Block, counts []uint64) error {
	reader := r.Events(ctx)
	var position uint64
	for i, count := range counts {
		receipt := &block.Transactions[i].Receipt
		for range count {
			event, err := wholeEvent(reader, block.Number, position)
			if err != nil {
				return &RowError{events, block.Number<<groupBits | position/groupEvents, err}
			}
			receipt.Events = append(receipt.Events, event)
			position++
		}
	}
	return nil
}

// wholeEvent reads an event with all its felts.
func wholeEvent(reader *EventReader, block, position uint64) (event starknet.Event, err error) {
	stored, err := reader.Event(block, position)
	if err != nil {
		return event, err
	}
	event.From = stored.From
	if event.Keys, err = stored.Keys.all(); err != nil {
		return event, err
	}
	event.Data, err = stored.Data.all()
	return event, err
}
