package era

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

const (
	// maxHeaderSize bounds a header. The longest ones are those of clique's
	// checkpoints, which list every signer.
	maxHeaderSize = 1 << 20
	// maxBodySize bounds a body. EIP-7934 caps a block at 8 MiB; before it gas did,
	// far below this. Receipts are bounded by gas as well.
	maxBodySize = 128 << 20
)

// Reader returns the blocks of one history file in their order. It belongs to one
// goroutine.
type Reader struct {
	store     *e2store
	format    Format
	blocks    []block
	root      common.Hash // of the accumulator; zero if there is none
	unchecked int
	next      int // in blocks
	buf       bytes.Buffer
	hasher    types.ListHasher
}

// block is one block of a file: its header, as checked, and where the rest is.
type block struct {
	header   *types.Header
	hash     common.Hash
	start    int64 // of the header's entry
	body     entry
	receipts entry // of length 0 and kind 0 if the file has no receipts
}

// Open checks a history file of that many bytes: all of it but bodies and receipts,
// so that no block is returned of a file whose headers are not those that it claims
// to hold. That takes a fraction of a second for a full file. Errors are of type
// *Error.
func Open(in io.ReaderAt, size int64) (*Reader, error) {
	c := check{store: newE2store(in, size)}
	if err := c.run(); err != nil {
		return nil, &Error{Offset: c.offset, Blocks: len(c.blocks), Err: err}
	}
	return &Reader{
		store: c.store, format: c.format, blocks: c.blocks, root: c.root, unchecked: c.unchecked, hasher: trie.NewListHasher(),
	}, nil
}

// Len is how many blocks the file has, at least one.
func (r *Reader) Len() int { return len(r.blocks) }

// Range is the numbers of the file's first and last block.
func (r *Reader) Range() Range { return rangeFrom(r.blocks[0].header.Number.Uint64(), r.Len()) }

// ID is what the file's name has the first bytes of: the accumulator's root for era1,
// the hash of the last block for ERE.
func (r *Reader) ID() common.Hash {
	if r.format == Era1 {
		return r.root
	}
	return r.LastHash()
}

// LastHash is the hash of the file's last block.
func (r *Reader) LastHash() common.Hash { return r.blocks[len(r.blocks)-1].hash }

// HasReceipts reports whether the file has the receipts of its blocks.
func (r *Reader) HasReceipts() bool { return r.blocks[0].receipts.kind != 0 }

// Unchecked is how many entries are proofs against the beacon chain, which cannot
// be checked without it.
func (r *Reader) Unchecked() int { return r.unchecked }

// Next returns the next block, or io.EOF after the last, once its body and its
// receipts have the roots that its header names. Other errors are of type *Error.
func (r *Reader) Next() (*types.Block, error) {
	if r.next == len(r.blocks) {
		return nil, io.EOF
	}
	from := &r.blocks[r.next]
	body, err := r.body(from)
	if err != nil {
		return nil, r.fault(from, from.body, err)
	}
	if from.receipts.kind != 0 {
		if err := r.checkReceipts(from); err != nil {
			return nil, r.fault(from, from.receipts, err)
		}
	}
	r.next++
	return types.NewBlockWithHeader(from.header).WithBody(*body), nil
}

func (r *Reader) fault(from *block, e entry, err error) error {
	return &Error{Offset: e.offset, Blocks: r.next, Err: fmt.Errorf("block %d: %w", from.header.Number, err)}
}

// body reads a body and compares it with its header.
func (r *Reader) body(from *block) (*types.Body, error) {
	if err := r.store.unzip(&r.buf, from.body, maxBodySize); err != nil {
		return nil, err
	}
	body := new(types.Body)
	if err := rlp.DecodeBytes(r.buf.Bytes(), body); err != nil {
		return nil, fmt.Errorf("not a block body: %w", err)
	}
	header := from.header
	if root := types.DeriveSha(types.Transactions(body.Transactions), r.hasher); root != header.TxHash {
		return nil, fmt.Errorf("the transactions have the root %s; the header names %s", root, header.TxHash)
	}
	if hash := types.CalcUncleHash(body.Uncles); hash != header.UncleHash {
		return nil, fmt.Errorf("the uncles have the hash %s; the header names %s", hash, header.UncleHash)
	}
	want := header.WithdrawalsHash
	if (body.Withdrawals == nil) != (want == nil) {
		return nil, fmt.Errorf("the body has withdrawals: %t; the header names a root of them: %t", body.Withdrawals != nil, want != nil)
	}
	if want != nil {
		if root := types.DeriveSha(types.Withdrawals(body.Withdrawals), r.hasher); root != *want {
			return nil, fmt.Errorf("the withdrawals have the root %s; the header names %s", root, *want)
		}
	}
	return body, nil
}

// checkReceipts compares the receipts of a block with its header.
func (r *Reader) checkReceipts(from *block) error {
	if err := r.store.unzip(&r.buf, from.receipts, maxBodySize); err != nil {
		return err
	}
	decode := decodeReceipts
	if from.receipts.kind == kindSlimReceipts {
		decode = decodeSlimReceipts
	}
	receipts, err := decode(r.buf.Bytes())
	if err != nil {
		return fmt.Errorf("not a list of receipts: %w", err)
	}
	if root := types.DeriveSha(receipts, r.hasher); root != from.header.ReceiptHash {
		return fmt.Errorf("the receipts have the root %s; the header names %s", root, from.header.ReceiptHash)
	}
	return nil
}
