package era

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy" // go-ethereum's: other encoders give other bytes
	"github.com/holiman/uint256"
)

// Blocks gives the blocks that a file is written of. For each kind of answer they are
// asked for in ascending order.
type Blocks interface {
	// Header returns a header's RLP, and the total difficulty of the chain up to it.
	Header(ctx context.Context, number uint64) (encoded []byte, totalDifficulty *big.Int, err error)
	// Body returns a body's RLP.
	Body(ctx context.Context, number uint64) ([]byte, error)
	// Receipts returns a block's receipts, which the writer may change. Blooms may be
	// left out.
	Receipts(ctx context.Context, number uint64) (types.Receipts, error)
}

// Write writes a history file of the blocks first to last, at most MaxBlocks, and
// returns what its name begins with and that names it: see [Reader.ID].
func Write(ctx context.Context, out io.Writer, format Format, from Blocks, blocks Range) (id common.Hash, err error) {
	if blocks.Last < blocks.First || blocks.Last-blocks.First >= MaxBlocks {
		return id, fmt.Errorf("blocks %d to %d: a history file holds 1 to %d blocks", blocks.First, blocks.Last, MaxBlocks)
	}
	w := &writer{out: out, from: from, format: format, blocks: blocks, places: make(map[kind][]int64)}
	w.snappy = snappy.NewBufferedWriter(&w.zipped)
	if err := w.entry(kindVersion, nil); err != nil {
		return id, err
	}
	if format == Era1 {
		err = w.era1(ctx)
	} else {
		err = w.ere(ctx)
	}
	return w.id, err
}

// writer writes one file.
type writer struct {
	out    io.Writer
	from   Blocks
	format Format
	blocks Range

	written     int64
	places      map[kind][]int64 // of the entries of a kind, in the order of the blocks
	totals      []*big.Int       // ERE: of each block, if there are any
	accumulator accumulator
	id          common.Hash
	zipped      bytes.Buffer
	snappy      *snappy.Writer
}

// era1 writes block after block.
func (w *writer) era1(ctx context.Context) error {
	for number := w.blocks.First; number <= w.blocks.Last; number++ {
		total, err := w.header(ctx, number)
		if err == nil && total == nil {
			err = fmt.Errorf("block %d comes after the merge: era1 holds blocks before it only", number)
		}
		if err == nil {
			err = w.body(ctx, number)
		}
		if err == nil {
			err = w.receipts(ctx, number)
		}
		if err == nil {
			err = w.total(total)
		}
		if err != nil {
			return err
		}
	}
	w.id = w.accumulator.root()
	if err := w.entry(kindAccumulator, w.id[:]); err != nil {
		return err
	}
	return w.index(kindBlockIndex, []kind{kindHeader})
}

// ere writes the headers, then the bodies, then the receipts, then the totals: those
// only if the first block comes before the merge. Blocks after the merge repeat the last.
func (w *writer) ere(ctx context.Context) error {
	kinds := []kind{kindHeader, kindBody, kindSlimReceipts}
	for _, section := range []func(context.Context, uint64) error{w.ereHeader, w.body, w.receipts} {
		for number := w.blocks.First; number <= w.blocks.Last; number++ {
			if err := section(ctx, number); err != nil {
				return err
			}
		}
	}
	if len(w.totals) > 0 {
		kinds = append(kinds, kindTotalDifficulty)
		for _, total := range w.totals {
			if err := w.total(total); err != nil {
				return err
			}
		}
		root := w.accumulator.root()
		if err := w.entry(kindAccumulator, root[:]); err != nil {
			return err
		}
	}
	return w.index(kindDynamicIndex, kinds)
}

func (w *writer) ereHeader(ctx context.Context, number uint64) error {
	total, err := w.header(ctx, number)
	if n := len(w.totals); total == nil && n > 0 {
		total = w.totals[n-1]
	}
	if total != nil {
		w.totals = append(w.totals, total)
	}
	return err
}

// header writes a header, and returns the total difficulty of a block before the merge.
func (w *writer) header(ctx context.Context, number uint64) (*big.Int, error) {
	encoded, total, err := w.from.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	var header types.Header
	if err := rlp.DecodeBytes(encoded, &header); err != nil {
		return nil, fmt.Errorf("header of block %d: %w", number, err)
	}
	w.id = crypto.Keccak256Hash(encoded)
	if err := w.zip(kindHeader, encoded); err != nil {
		return nil, err
	}
	if header.Difficulty.Sign() == 0 {
		return nil, nil
	}
	sum, overflow := uint256.FromBig(total)
	if overflow {
		return nil, fmt.Errorf("block %d: the total difficulty has %d bits, a history file holds 256", number, total.BitLen())
	}
	w.accumulator.add(w.id, sum)
	return total, nil
}

func (w *writer) body(ctx context.Context, number uint64) error {
	encoded, err := w.from.Body(ctx, number)
	if err != nil {
		return err
	}
	return w.zip(kindBody, encoded)
}

func (w *writer) receipts(ctx context.Context, number uint64) error {
	receipts, err := w.from.Receipts(ctx, number)
	if err != nil {
		return err
	}
	encoded, err := encodeReceipts(w.format, receipts)
	if err != nil {
		return fmt.Errorf("receipts of block %d: %w", number, err)
	}
	k := kindReceipts
	if w.format == ERE {
		k = kindSlimReceipts
	}
	return w.zip(k, encoded)
}

func (w *writer) total(total *big.Int) error {
	word := littleEndian(uint256.MustFromBig(total)) // header has checked its size
	return w.entry(kindTotalDifficulty, word[:])
}

// index writes the index at the end: for each block the places of its entries of the
// kinds, relative to the index's own.
func (w *writer) index(k kind, kinds []kind) error {
	data := binary.LittleEndian.AppendUint64(nil, w.blocks.First)
	count := len(w.places[kindHeader])
	for i := range count {
		for _, of := range kinds {
			data = binary.LittleEndian.AppendUint64(data, uint64(w.places[of][i]-w.written))
		}
	}
	if k == kindDynamicIndex {
		data = binary.LittleEndian.AppendUint64(data, uint64(len(kinds)))
	}
	return w.entry(k, binary.LittleEndian.AppendUint64(data, uint64(count)))
}

// zip writes an entry with the data in snappy's framing format.
func (w *writer) zip(k kind, data []byte) error {
	w.zipped.Reset()
	w.snappy.Reset(&w.zipped)
	if _, err := w.snappy.Write(data); err != nil {
		return err
	}
	if err := w.snappy.Flush(); err != nil {
		return err
	}
	return w.entry(k, w.zipped.Bytes())
}

// entry writes an entry and notes where it is.
func (w *writer) entry(k kind, data []byte) error {
	w.places[k] = append(w.places[k], w.written)
	for _, part := range [][]byte{appendEntryHead(nil, k, len(data)), data} {
		n, err := w.out.Write(part)
		w.written += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}
