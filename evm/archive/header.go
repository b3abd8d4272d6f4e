package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"

	"ashlar/history/rows"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Header is a stored block header with additional data of the block.
type Header struct {
	*types.Header
	Hash            common.Hash
	TotalDifficulty *big.Int // of the chain including this block
	Size            uint64   // of the whole block's RLP, in bytes
	RLP             []byte   // of the header
}

// encodeHeader makes the row of a block in the headers table:
//
//	hash | uvarint size | uvarint n, total difficulty (n bytes) | header RLP
func encodeHeader(block *types.Block, totalDifficulty *big.Int) ([]byte, error) {
	var row bytes.Buffer
	hash := block.Hash()
	row.Write(hash[:])
	row.Write(binary.AppendUvarint(nil, block.Size()))
	difficulty := totalDifficulty.Bytes()
	row.Write(binary.AppendUvarint(nil, uint64(len(difficulty))))
	row.Write(difficulty)
	if err := rlp.Encode(&row, block.Header()); err != nil {
		return nil, fmt.Errorf("encode header of block %d: %w", block.NumberU64(), err)
	}
	return row.Bytes(), nil
}

// decodeHeader decodes a row of the headers table. The header refers to row.
func decodeHeader(row []byte) (*Header, error) {
	r := rows.Decode(row)
	h := &Header{Header: new(types.Header)}
	copy(h.Hash[:], r.Take(common.HashLength))
	h.Size = r.Uvarint()
	h.TotalDifficulty = new(big.Int).SetBytes(r.UvarintBytes())
	h.RLP = r.Rest()
	if err := r.End("headers"); err != nil {
		return nil, err
	}
	if err := rlp.DecodeBytes(h.RLP, h.Header); err != nil {
		return nil, fmt.Errorf("%w: headers row: %v", ErrCorrupt, err)
	}
	return h, nil
}

// Stamp is the hash and the time of a block, which are part of each log's JSON.
type Stamp struct {
	Hash common.Hash
	Time uint64
}

// fieldsBeforeTime is the number of header fields before the timestamp.
const fieldsBeforeTime = 11

// decodeStamp reads a block's stamp from its row of the headers table. It is much cheaper
// than decoding the whole header.
func decodeStamp(row []byte) (s Stamp, err error) {
	r := rows.Decode(row)
	copy(s.Hash[:], r.Take(common.HashLength))
	r.Uvarint()      // size
	r.UvarintBytes() // total difficulty
	header := r.Rest()
	if err := r.End("headers"); err != nil {
		return s, err
	}
	fields, _, err := rlp.SplitList(header)
	for i := 0; i < fieldsBeforeTime && err == nil; i++ {
		_, _, fields, err = rlp.Split(fields)
	}
	if err == nil {
		s.Time, _, err = rlp.SplitUint64(fields)
	}
	if err != nil {
		return s, fmt.Errorf("%w: headers row: %v", ErrCorrupt, err)
	}
	return s, nil
}
