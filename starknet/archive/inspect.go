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

// This file gives package verify access to the rows of an archive.

// TableSet gives access to the tables of a Starknet network.
type TableSet struct {
	Headers, Transactions, Events        *kv.Table // from which blocks are read
	BlockHashes, TxHashes, EventPostings *kv.Table // derived from those
}

// NamedTables returns the tables by name; [Tables] returns them as a list.
func NamedTables() TableSet {
	return TableSet{
		Headers: headers, Transactions: transactions, Events: events,
		BlockHashes: blockHashes, TxHashes: txHashes, EventPostings: eventPostings,
	}
}

// Own returns the tables from which blocks are read.
func (t TableSet) Own() []*kv.Table { return []*kv.Table{t.Headers, t.Transactions, t.Events} }

// Derived returns the tables whose rows follow from those of Own.
func (t TableSet) Derived() []*kv.Table {
	return []*kv.Table{t.BlockHashes, t.TxHashes, t.EventPostings}
}

// DescribeKey describes a row without its block, for error messages.
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
	return fmt.Sprintf("partition %#x, sort key %d: not a key of this table", partition, sort)
}

// misplaced describes the partition of a block's row if it is the wrong one.
func misplaced(partition []byte, block uint64) string {
	if want := rows.Chunk(block); !bytes.Equal(partition, want[:]) {
		return fmt.Sprintf(" in the partition %#x, where its chunk is %#x", partition, want)
	}
	return ""
}

// OpenUnchecked is [Open] for checking an archive: it reads no rows, so damaged rows cannot make
// it fail. Blocks cannot be appended to the result. Its span is nil if it has no blocks.
func OpenUnchecked(ctx context.Context, store kv.Store) (*Archive, error) {
	a, span, err := openSpan(ctx, store)
	if err != nil {
		return nil, err
	}
	a.span.Store(span)
	return a, nil
}

// RowError is an error about a row of a block: it cannot be read, or contradicts other rows.
type RowError struct {
	Table *kv.Table
	Sort  uint64
	Err   error
}

func (e *RowError) Error() string { return e.Err.Error() }

func (e *RowError) Unwrap() error { return e.Err }

// Block reads a block, with transactions without signatures. Errors are of type [*RowError]. Of
// redundant data, Block checks only the numbers of transactions and events.
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
	counts := make([]uint64, stored.Len()) // of events by transaction
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
		err := fmt.Errorf("%w: the header counts %d transactions, expected %d, the number of stored ones", rows.ErrCorrupt, header.TransactionCount, stored.Len())
		return nil, &RowError{headers, number, err}
	case header.EventCount != total && r.endsWithEvent(ctx, number, header.EventCount):
		err := fmt.Errorf("%w: the transactions count %d events, expected %d, the number of stored ones", rows.ErrCorrupt, total, header.EventCount)
		return nil, &RowError{transactions, number, err}
	case header.EventCount != total:
		err := fmt.Errorf("%w: the header counts %d events, expected %d, as the transactions do", rows.ErrCorrupt, header.EventCount, total)
		return nil, &RowError{headers, number, err}
	}
	return block, r.readEvents(ctx, block, counts)
}

// endsWithEvent reports whether exactly count events of a block are stored.
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

// readEvents reads the events of each transaction of a block.
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
