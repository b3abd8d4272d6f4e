package archive

import (
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"
	"ashlar/starknet"
)

// Header is a stored header with the numbers of transactions and events.
type Header struct {
	starknet.Header
	TransactionCount uint64
	EventCount       uint64
}

// headerFelts returns the felts of a header that are stored without leading zeros, in the order
// of storage.
func headerFelts(h *starknet.Header) []*starknet.Felt {
	c := &h.Commitments
	return []*starknet.Felt{
		&h.Sequencer,
		&h.L1GasPrice.Wei, &h.L1GasPrice.Fri,
		&h.L1DataGasPrice.Wei, &h.L1DataGasPrice.Fri,
		&h.L2GasPrice.Wei, &h.L2GasPrice.Fri,
		&c.Transactions, &c.Events, &c.Receipts, &c.StateDiff,
	}
}

// encodeHeader returns the row of a block in the starknet_headers table:
//
//	hash | parent | new root (32 bytes each)
//	uvarint timestamp | status byte | L1 data mode byte
//	uvarint count of transactions | uvarint count of events | uvarint state diff length
//	uvarint length, version | eleven felts, see headerFelts
func encodeHeader(block *starknet.Block) []byte {
	h := &block.Header
	row := make([]byte, 0, 256)
	row = append(row, h.Hash[:]...)
	row = append(row, h.Parent[:]...)
	row = append(row, h.NewRoot[:]...)
	row = binary.AppendUvarint(row, h.Timestamp)
	row = append(row, byte(h.Status), byte(h.L1DataMode))
	row = binary.AppendUvarint(row, uint64(len(block.Transactions)))
	row = binary.AppendUvarint(row, uint64(block.EventCount()))
	row = binary.AppendUvarint(row, h.Commitments.StateDiffLength)
	row = append(binary.AppendUvarint(row, uint64(len(h.Version))), h.Version...)
	for _, felt := range headerFelts(h) {
		row = appendFelt(row, felt)
	}
	return row
}

// decodeHeader decodes a row of the starknet_headers table.
func decodeHeader(number uint64, row []byte) (*Header, error) {
	in := rows.Decode(row)
	h := &Header{Header: starknet.Header{Number: number}}
	copy(h.Hash[:], in.Take(starknet.FeltBytes))
	copy(h.Parent[:], in.Take(starknet.FeltBytes))
	copy(h.NewRoot[:], in.Take(starknet.FeltBytes))
	h.Timestamp = in.Uvarint()
	h.Status, h.L1DataMode = starknet.Status(in.Byte()), starknet.L1DataMode(in.Byte())
	h.TransactionCount = in.Uvarint()
	h.EventCount = in.Uvarint()
	h.Commitments.StateDiffLength = in.Uvarint()
	h.Version = string(in.UvarintBytes())
	for _, felt := range headerFelts(&h.Header) {
		if !takeFelt(&in, felt) {
			return nil, fmt.Errorf("%w: %s row: a felt of more than %d bytes", rows.ErrCorrupt, headers.Name, starknet.FeltBytes)
		}
	}
	return h, in.End(headers.Name)
}
