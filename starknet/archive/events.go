package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"
)

// Event is a stored event. It aliases its row.
type Event struct {
	BlockHash       starknet.Felt
	Transaction     uint64 // index in the block
	TransactionHash starknet.Felt
	Index           uint64 // index among the transaction's events
	From            starknet.Felt
	Keys            Felts
	Data            Felts
}

// eventRows calls put with the rows of a block in the starknet_events table. Each row holds
// groupEvents events, the last one possibly fewer:
//
//	hash of the block (32 bytes) | uvarint n | n × transaction | events
//
// where a transaction, one of those that emitted the events, is
//
//	uvarint position in the block | hash (32 bytes) | uvarint events in rows before
//
// and an event is
//
//	uvarint length | byte, which of the transactions | felt from
//	uvarint count, felts of the keys | uvarint count, felts of the data
func eventRows(block *starknet.Block, put func(group uint64, row []byte)) {
	group := eventGroup{put: put, block: block.Hash}
	for i := range block.Transactions {
		t := &block.Transactions[i]
		for at := range t.Receipt.Events {
			group.add(uint64(i), t.Hash, uint64(at), &t.Receipt.Events[at])
		}
	}
	if group.size > 0 {
		group.flush()
	}
}

// eventGroup builds a row.
type eventGroup struct {
	put          func(group uint64, row []byte)
	block        starknet.Felt
	number       uint64
	size         int
	transactions int
	last         uint64 // last transaction in the row
	head         []byte // the transactions
	events       []byte
	event        []byte
}

// add adds an event, given the index of its transaction and its position among the transaction's
// events.
func (g *eventGroup) add(index uint64, hash starknet.Felt, position uint64, event *starknet.Event) {
	if g.size == groupEvents {
		g.flush()
	}
	if g.transactions == 0 || g.last != index {
		g.head = append(binary.AppendUvarint(g.head, index), hash[:]...)
		g.head = binary.AppendUvarint(g.head, position)
		g.last = index
		g.transactions++
	}
	g.event = appendFelt(append(g.event[:0], byte(g.transactions-1)), &event.From)
	g.event = appendFelts(appendFelts(g.event, event.Keys), event.Data)
	g.events = append(binary.AppendUvarint(g.events, uint64(len(g.event))), g.event...)
	g.size++
}

func (g *eventGroup) flush() {
	row := binary.AppendUvarint(g.block[:len(g.block):len(g.block)], uint64(g.transactions))
	g.put(g.number, append(append(row, g.head...), g.events...))
	g.number++
	g.size, g.transactions, g.head, g.events = 0, 0, g.head[:0], g.events[:0]
}

// decodeEvent decodes the event at a position in a row of the starknet_events table. The event
// aliases row.
func decodeEvent(row []byte, position int) (event Event, err error) {
	head := rows.Decode(row)
	copy(event.BlockHash[:], head.Take(starknet.FeltBytes))
	count := head.Count(2 + starknet.FeltBytes)
	in := head
	for range count {
		in.Uvarint()
		in.Take(starknet.FeltBytes)
		in.Uvarint()
	}
	var before [groupEvents]byte // preceding events in this row, by transaction
	for range position {
		if other := in.UvarintBytes(); len(other) > 0 && other[0] < groupEvents {
			before[other[0]]++
		}
	}
	encoded := in.UvarintBytes()
	if in.Failed() || len(encoded) == 0 || int(encoded[0]) >= min(count, groupEvents) {
		return event, fmt.Errorf("%w: %s row has no event %d", rows.ErrCorrupt, events.Name, position)
	}
	for range int(encoded[0]) + 1 {
		event.Transaction = head.Uvarint()
		copy(event.TransactionHash[:], head.Take(starknet.FeltBytes))
		event.Index = head.Uvarint()
	}
	event.Index += uint64(before[encoded[0]])
	in = rows.Decode(encoded[1:])
	if !takeFelt(&in, &event.From) {
		return event, fmt.Errorf("%w: %s row: event %d has an address of more than %d bytes", rows.ErrCorrupt, events.Name, position, starknet.FeltBytes)
	}
	event.Keys = takeFelts(in)
	behind := event.Keys
	if err := behind.skip(); err != nil {
		return event, err
	}
	event.Data = takeFelts(behind.rest())
	return event, event.Data.failed()
}

// EventReader reads events. Reading consecutive events is cheaper, as they share rows. It is for
// use by one goroutine.
type EventReader struct {
	rows   kv.Reader
	ctx    context.Context
	block  uint64
	group  uint64
	loaded bool
	row    []byte
}

// Event returns the event at a position in a block, which must exist. It is valid until the next
// call.
func (r *EventReader) Event(block, position uint64) (Event, error) {
	if group := position / groupEvents; !r.loaded || r.block != block || r.group != group {
		r.loaded = false
		partition := rows.Chunk(block)
		row, err := r.rows.Get(r.ctx, events, partition[:], block<<groupBits|group, r.row[:0])
		if errors.Is(err, kv.ErrNotFound) {
			return Event{}, fmt.Errorf("%w: block %d has no event %d: %w", rows.ErrCorrupt, block, position, err)
		}
		if err != nil {
			return Event{}, err
		}
		r.block, r.group, r.row, r.loaded = block, group, row, true
	}
	event, err := decodeEvent(r.row, int(position%groupEvents))
	if err != nil {
		return event, fmt.Errorf("block %d: %w", block, err)
	}
	return event, nil
}
