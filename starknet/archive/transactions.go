package archive

import (
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

// Flags of a transaction.
const (
	flagReverted = 1 << iota
	flagContract // followed by the address of the created contract
	flagMessage  // followed by the hash of the consumed L1 message
)

// Transactions are the stored transactions of a block. They alias their row and are decoded on
// demand.
type Transactions struct {
	ends   rows.Offsets
	hashes []byte
	items  []byte
}

// Transaction is a stored transaction with its receipt. Its events are in rows of their own.
type Transaction struct {
	starknet.Transaction // without signature and events
	FirstEvent           uint64
	EventCount           uint64
}

// encodeTransactions returns the row of a block in the starknet_transactions table:
//
//	uvarint n | n × end offset (uint32 little-endian) | n × hash (32 bytes) | n × transaction
//
// See appendTransaction for a transaction.
func encodeTransactions(block *starknet.Block) []byte {
	n := len(block.Transactions)
	items := make([]byte, 0, 64*n)
	row := binary.AppendUvarint(make([]byte, 0, 100*n+8), uint64(n))
	var firstEvent uint64
	for i := range block.Transactions {
		items = appendTransaction(items, &block.Transactions[i], firstEvent)
		firstEvent += uint64(len(block.Transactions[i].Receipt.Events))
		row = binary.LittleEndian.AppendUint32(row, uint32(len(items)))
	}
	for i := range block.Transactions {
		row = append(row, block.Transactions[i].Hash[:]...)
	}
	return append(row, items...)
}

// appendTransaction appends
//
//	kind byte | flags byte | uvarint version | felt fee | uvarint gas, of L1, L1 data and L2
//	[felt contract address] | [message hash (32 bytes)] | [uvarint length, revert reason]
//	uvarint first event | uvarint count of events | uvarint count of messages | messages
//
// where a message is
//
//	felt from | felt to | uvarint count, felts of the payload
func appendTransaction(dst []byte, t *starknet.Transaction, firstEvent uint64) []byte {
	var flags byte
	if t.Receipt.Reverted {
		flags |= flagReverted
	}
	if !t.ContractAddress.IsZero() {
		flags |= flagContract
	}
	if t.MessageHash != (common.Hash{}) {
		flags |= flagMessage
	}
	dst = append(dst, byte(t.Kind), flags)
	dst = binary.AppendUvarint(dst, t.Version)
	dst = appendFelt(dst, &t.Receipt.ActualFee)
	dst = binary.AppendUvarint(dst, t.Receipt.Gas.L1)
	dst = binary.AppendUvarint(dst, t.Receipt.Gas.L1Data)
	dst = binary.AppendUvarint(dst, t.Receipt.Gas.L2)
	if flags&flagContract != 0 {
		dst = appendFelt(dst, &t.ContractAddress)
	}
	if flags&flagMessage != 0 {
		dst = append(dst, t.MessageHash[:]...)
	}
	if flags&flagReverted != 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(t.Receipt.RevertReason))), t.Receipt.RevertReason...)
	}
	dst = binary.AppendUvarint(dst, firstEvent)
	dst = binary.AppendUvarint(dst, uint64(len(t.Receipt.Events)))
	dst = binary.AppendUvarint(dst, uint64(len(t.Receipt.Messages)))
	for i := range t.Receipt.Messages {
		message := &t.Receipt.Messages[i]
		dst = appendFelt(appendFelt(dst, &message.From), &message.To)
		dst = appendFelts(dst, message.Payload)
	}
	return dst
}

// decodeTransactions decodes a row of the starknet_transactions table.
func decodeTransactions(row []byte) (*Transactions, error) {
	in := rows.Decode(row)
	t := &Transactions{ends: in.Offsets()}
	t.hashes = in.Take(uint64(t.ends.Len()) * starknet.FeltBytes)
	t.items = in.Rest()
	return t, in.End(transactions.Name)
}

// Len returns the number of transactions.
func (t *Transactions) Len() int { return t.ends.Len() }

// Hash returns the hash of transaction i, which must be below Len.
func (t *Transactions) Hash(i int) starknet.Felt {
	return starknet.Felt(t.hashes[i*starknet.FeltBytes : (i+1)*starknet.FeltBytes])
}

// Transaction decodes transaction i, which must be below Len.
func (t *Transactions) Transaction(i int) (Transaction, error) {
	var tx Transaction
	item, ok := t.ends.Item(t.items, i)
	if !ok {
		return tx, fmt.Errorf("%w: %s row: transaction %d lies outside it", rows.ErrCorrupt, transactions.Name, i)
	}
	in := rows.Decode(item)
	tx.Hash = t.Hash(i)
	tx.Kind = starknet.TransactionKind(in.Byte())
	flags := in.Byte()
	tx.Version = in.Uvarint()
	fits := takeFelt(&in, &tx.Receipt.ActualFee)
	tx.Receipt.Gas = starknet.GasUsed{L1: in.Uvarint(), L1Data: in.Uvarint(), L2: in.Uvarint()}
	if flags&flagContract != 0 {
		fits = takeFelt(&in, &tx.ContractAddress) && fits
	}
	if flags&flagMessage != 0 {
		copy(tx.MessageHash[:], in.Take(common.HashLength))
	}
	if flags&flagReverted != 0 {
		tx.Receipt.Reverted, tx.Receipt.RevertReason = true, string(in.UvarintBytes())
	}
	tx.FirstEvent = in.Uvarint()
	tx.EventCount = in.Uvarint()
	if !fits {
		return tx, fmt.Errorf("%w: %s row: transaction %d has a felt of more than %d bytes", rows.ErrCorrupt, transactions.Name, i, starknet.FeltBytes)
	}
	messages, err := decodeMessages(in)
	tx.Receipt.Messages = messages
	return tx, err
}

// decodeMessages decodes the messages at the end of a transaction.
func decodeMessages(in rows.Decoder) ([]starknet.Message, error) {
	const leastBytes = 3 // two felts and a count
	count := in.Count(leastBytes)
	messages := make([]starknet.Message, count)
	for i := range messages {
		if !takeFelt(&in, &messages[i].From) || !takeFelt(&in, &messages[i].To) {
			return nil, fmt.Errorf("%w: %s row: a message's felt of more than %d bytes", rows.ErrCorrupt, transactions.Name, starknet.FeltBytes)
		}
		payload := takeFelts(in)
		var err error
		if messages[i].Payload, err = payload.all(); err != nil {
			return nil, err
		}
		in = payload.rest()
	}
	return messages, in.End(transactions.Name)
}
