package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Term names something that a log can be asked for: its address, or a topic at a position.
type Term [12]byte

// AddressTerm is the term of the logs of an address.
func AddressTerm(address common.Address) Term { return term(0, address[:]) }

// TopicTerm is the term of the logs whose topic at a position, 0 to 3, has that value.
func TopicTerm(position int, topic common.Hash) Term { return term(byte(position)+1, topic[:]) }

// term hashes what the term stands for. Two terms can be made to collide with
// much work, so whoever loads a log compares it with the filter.
func term(position byte, value []byte) Term {
	var buffer [1 + common.HashLength]byte
	buffer[0] = position
	n := copy(buffer[1:], value)
	hash := sha256.Sum256(buffer[:1+n])
	return Term(hash[:12])
}

// blockPostings collects, for every term in a block, the positions of its logs,
// encoded as the value of a row in the log_postings table: the first position
// and then the gaps to the next, less one, each a uvarint.
type blockPostings struct {
	rows map[Term]*posting
}

type posting struct {
	next  uint64 // the least position that can follow
	value []byte
}

func newBlockPostings(receipts types.Receipts) *blockPostings {
	b := &blockPostings{rows: make(map[Term]*posting)}
	var position uint64
	for _, receipt := range receipts {
		for _, log := range receipt.Logs {
			b.add(AddressTerm(log.Address), position)
			for i, topic := range log.Topics {
				b.add(TopicTerm(i, topic), position)
			}
			position++
		}
	}
	return b
}

func (b *blockPostings) add(term Term, position uint64) {
	row := b.rows[term]
	if row == nil {
		row = new(posting)
		b.rows[term] = row
	}
	row.value = binary.AppendUvarint(row.value, position-row.next)
	row.next = position + 1
}

// decodePositions appends the positions in the value of a log_postings row to dst, in ascending order.
func decodePositions(row []byte, dst []uint32) ([]uint32, error) {
	var next uint64
	for len(row) > 0 {
		gap, n := binary.Uvarint(row)
		if n <= 0 || next+gap < next || next+gap > 1<<32-2 {
			return dst, fmt.Errorf("%w: log_postings row does not decode", ErrCorrupt)
		}
		dst = append(dst, uint32(next+gap))
		next += gap + 1
		row = row[n:]
	}
	return dst, nil
}
