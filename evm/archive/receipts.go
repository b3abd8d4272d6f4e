package archive

import (
	"encoding/binary"
	"fmt"
	"sort"

	"ashlar/history/rows"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Receipts are the stored receipts of a block. They refer to their row and decode parts on
// request.
type Receipts struct {
	ends  rows.Offsets
	items []byte
}

// The outcome of a transaction, the first byte of its receipt.
const (
	outcomeFailed    = 0
	outcomeSucceeded = 1
	outcomeStateRoot = 2 // before Byzantium: the state root after it, 32 bytes

	// outcomeHash is added if the hash of the transaction follows, 32 bytes. Receipts with logs
	// have it, so that answers with logs need no body.
	outcomeHash = 4
)

// Receipt is one stored receipt, without the fields that the block and the transaction
// have.
type Receipt struct {
	StateRoot         []byte // before Byzantium: the state root after the transaction, else nil
	Succeeded         bool
	CumulativeGasUsed uint64
	FirstLog          uint64 // position in the block of the receipt's first log
	LogCount          uint64
	TransactionHash   []byte // nil if it is not stored
	logs              []byte
}

// leastLogBytes is the size of a log without topics and data.
const leastLogBytes = common.AddressLength + 2

// Log is one stored log.
type Log struct {
	Address common.Address
	Topics  []byte // 0 to 4 times 32 bytes
	Data    []byte
}

// encodeReceipts makes the row of a block in the receipts table:
//
//	uvarint n | n × end offset (uint32 little-endian) | n × receipt
//
// where a receipt is
//
//	outcome byte [state root (32 bytes)] [transaction hash (32 bytes)] | uvarint cumulative gas used
//	uvarint position of the first log | uvarint count of logs | logs
//
// and a log
//
//	address (20 bytes) | count of topics (byte) | topics | uvarint length, data
//
// The hashes of transactions are stored if these are given.
func encodeReceipts(receipts types.Receipts, transactions types.Transactions) []byte {
	items := make([]byte, 0, 256*len(receipts))
	row := binary.AppendUvarint(make([]byte, 0, 300*len(receipts)+8), uint64(len(receipts)))
	var firstLog uint64
	for i, receipt := range receipts {
		var hash []byte
		if len(receipt.Logs) > 0 && i < len(transactions) {
			whole := transactions[i].Hash()
			hash = whole[:]
		}
		items = appendReceipt(items, receipt, hash, firstLog)
		firstLog += uint64(len(receipt.Logs))
		row = binary.LittleEndian.AppendUint32(row, uint32(len(items)))
	}
	return append(row, items...)
}

// appendReceipt appends a receipt. hash is that of its transaction, or nil if it is not stored.
func appendReceipt(dst []byte, receipt *types.Receipt, hash []byte, firstLog uint64) []byte {
	outcome := byte(outcomeFailed)
	switch {
	case len(receipt.PostState) > 0:
		outcome = outcomeStateRoot
	case receipt.Status == types.ReceiptStatusSuccessful:
		outcome = outcomeSucceeded
	}
	if hash != nil {
		outcome |= outcomeHash
	}
	dst = append(append(dst, outcome), receipt.PostState...)
	dst = append(dst, hash...)
	dst = binary.AppendUvarint(dst, receipt.CumulativeGasUsed)
	dst = binary.AppendUvarint(dst, firstLog)
	dst = binary.AppendUvarint(dst, uint64(len(receipt.Logs)))
	for _, log := range receipt.Logs {
		dst = append(dst, log.Address[:]...)
		dst = append(dst, byte(len(log.Topics)))
		for _, topic := range log.Topics {
			dst = append(dst, topic[:]...)
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(log.Data))), log.Data...)
	}
	return dst
}

// decodeReceipts decodes a row of the receipts table. The receipts refer to row.
func decodeReceipts(row []byte) (Receipts, error) {
	r := rows.Decode(row)
	receipts := Receipts{ends: r.Offsets()}
	receipts.items = r.Rest()
	return receipts, r.End("receipts")
}

// Len is the number of receipts.
func (r *Receipts) Len() int { return r.ends.Len() }

// Receipt returns receipt i, with i < Len.
func (r *Receipts) Receipt(i int) (Receipt, error) {
	var receipt Receipt
	item, ok := r.ends.Item(r.items, i)
	if !ok {
		return receipt, fmt.Errorf("%w: receipts row: receipt %d lies outside it", ErrCorrupt, i)
	}
	in := rows.Decode(item)
	outcome := in.Byte()
	switch outcome &^ outcomeHash {
	case outcomeStateRoot:
		receipt.StateRoot = in.Take(common.HashLength)
	case outcomeSucceeded:
		receipt.Succeeded = true
	case outcomeFailed:
	default:
		return receipt, fmt.Errorf("%w: receipts row: receipt %d has the outcome %d", ErrCorrupt, i, outcome)
	}
	if outcome&outcomeHash != 0 {
		receipt.TransactionHash = in.Take(common.HashLength)
	}
	receipt.CumulativeGasUsed = in.Uvarint()
	receipt.FirstLog = in.Uvarint()
	receipt.LogCount = in.Uvarint()
	receipt.logs = in.Rest()
	if fits := uint64(len(receipt.logs)) / leastLogBytes; receipt.LogCount > fits {
		return receipt, fmt.Errorf("%w: receipts row: receipt %d has room for %d logs, not %d", ErrCorrupt, i, fits, receipt.LogCount)
	}
	return receipt, in.End("receipts")
}

// Whole returns receipt i, for a transaction of the given type, with all fields that its
// hash covers except the bloom filter. Its logs refer to the row.
func (r *Receipts) Whole(i int, transactionType byte) (*types.Receipt, error) {
	stored, err := r.Receipt(i)
	if err != nil {
		return nil, err
	}
	receipt := &types.Receipt{Type: transactionType, PostState: stored.StateRoot, CumulativeGasUsed: stored.CumulativeGasUsed}
	if stored.Succeeded {
		receipt.Status = types.ReceiptStatusSuccessful
	}
	logs := stored.Logs()
	for log, ok, err := logs.Next(); ok || err != nil; log, ok, err = logs.Next() {
		if err != nil {
			return nil, err
		}
		whole := &types.Log{Address: log.Address, Data: log.Data}
		for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
			whole.Topics = append(whole.Topics, common.Hash(topics[:common.HashLength]))
		}
		receipt.Logs = append(receipt.Logs, whole)
	}
	return receipt, nil
}

// LogCount is the number of logs in the block.
func (r *Receipts) LogCount() (uint64, error) {
	if r.Len() == 0 {
		return 0, nil
	}
	last, err := r.Receipt(r.Len() - 1)
	if err != nil {
		return 0, err
	}
	if last.FirstLog > uint64(len(r.items))/leastLogBytes {
		return 0, fmt.Errorf("%w: receipts row: its last receipt begins at log %d", ErrCorrupt, last.FirstLog)
	}
	return last.FirstLog + last.LogCount, nil
}

// LogsBefore is the number of logs in the receipts before receipt i, with i <= Len.
func (r *Receipts) LogsBefore(i int) (uint64, error) {
	if i == 0 {
		return 0, nil
	}
	return r.logEnd(i - 1)
}

// OfLog returns the index of the receipt with the log at a position in the block, or Len if
// the block has fewer logs. All receipts before from must end before that log. The search
// starts there with doubling steps, because callers that look up one log after the other
// usually want a close one.
func (r *Receipts) OfLog(position uint64, from int) (int, error) {
	var failed error
	holds := func(i int) bool { // or the log is in an earlier receipt
		end, err := r.logEnd(i)
		if err != nil {
			failed = err
		}
		return end > position || err != nil
	}
	step := 1
	for from+step <= r.Len() && !holds(from+step-1) {
		from += step
		step *= 2
	}
	i := from + sort.Search(min(step, r.Len()-from), func(i int) bool { return holds(from + i) })
	return i, failed
}

// logEnd returns the position in the block after the last log of receipt i.
func (r *Receipts) logEnd(i int) (uint64, error) {
	receipt, err := r.Receipt(i)
	return receipt.FirstLog + receipt.LogCount, err
}

// Logs returns an iterator over the receipt's logs.
func (r Receipt) Logs() LogReader { return LogReader{in: rows.Decode(r.logs), left: r.LogCount} }

// LogReader iterates over a receipt's logs.
type LogReader struct {
	in   rows.Decoder
	left uint64
}

// Next returns the next log, or false after the last. The log refers to the row.
func (l *LogReader) Next() (log Log, ok bool, err error) {
	if l.left == 0 {
		return log, false, l.in.End("receipts")
	}
	l.left--
	copy(log.Address[:], l.in.Take(common.AddressLength))
	log.Topics = l.in.Take(uint64(l.in.Byte()) * common.HashLength)
	log.Data = l.in.UvarintBytes()
	if l.in.Failed() {
		return log, false, fmt.Errorf("%w: receipts row: a log ends outside it", ErrCorrupt)
	}
	return log, true, nil
}
