package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// maxHeaderSize bounds a header. The longest ones are those of clique's
// checkpoints, which list every signer.
const maxHeaderSize = 1 << 20

// era1 reads an archive of up to 8192 blocks:
//
//	Version  (CompressedHeader CompressedBody CompressedReceipts TotalDifficulty)*  other*  Accumulator  BlockIndex
//
// openEra1 goes through all of it but the bodies and receipts, so that no block
// is returned of a file whose headers are not those that its accumulator stands
// for. That takes a fraction of a second for a full file, little beside executing
// its blocks. The bodies are tied to the headers by their roots, which execution
// checks.
type era1 struct {
	store  *e2store
	read   *atomic.Int64
	blocks []era1Block
	given  int // blocks returned so far
	buf    bytes.Buffer
}

// era1Block is one block of an archive: its header, as checked, and its body.
type era1Block struct {
	header *types.Header
	start  int64 // of its first entry
	body   entry
}

func openEra1(in io.ReaderAt, size int64, read *atomic.Int64) (*era1, error) {
	c := era1Check{store: newE2store(in, size)}
	if err := c.run(); err != nil {
		return nil, &Error{Offset: c.offset, Block: len(c.blocks), Err: err}
	}
	return &era1{store: c.store, read: read, blocks: c.blocks}, nil
}

func (e *era1) next() (*types.Block, error) {
	if e.given == len(e.blocks) {
		e.read.Store(e.store.size)
		return nil, io.EOF
	}
	from := &e.blocks[e.given]
	e.buf.Reset()
	err := e.store.unzip(&e.buf, from.body, maxBlockSize)
	if err != nil {
		return nil, &Error{Offset: from.body.offset, Block: e.given, Err: err}
	}
	var body types.Body
	if err := rlp.DecodeBytes(e.buf.Bytes(), &body); err != nil {
		return nil, &Error{Offset: from.body.offset, Block: e.given,
			Err: fmt.Errorf("block %d: no body of a block: %w", from.header.Number, err)}
	}
	block := types.NewBlockWithHeader(from.header).WithBody(body)
	from.header = nil // the block has its own
	e.read.Store(from.body.end())
	e.given++
	return block, nil
}

// era1Check goes through an archive from its beginning to its end. When it
// fails, offset is where.
type era1Check struct {
	store  *e2store
	offset int64
	blocks []era1Block

	accumulator     accumulator
	parent          common.Hash
	totalDifficulty uint256.Int
	buf             bytes.Buffer
}

func (c *era1Check) run() error {
	version, err := c.entry(entryVersion, "the version")
	if err != nil {
		return err
	}
	if version.length != 0 {
		return fmt.Errorf("the version entry has %d bytes; want none", version.length)
	}
	c.offset = version.end()
	for {
		e, err := c.store.at(c.offset)
		if err != nil {
			return err
		}
		switch e.kind {
		case entryCompressedHeader:
			err = c.block(e)
		case entryAccumulator:
			return c.end(e)
		case entryCompressedBody, entryCompressedReceipts, entryTotalDifficulty, entryBlockIndex, entryVersion:
			err = fmt.Errorf("an entry of type %#x; want a header or the accumulator", e.kind)
		default: // other entries are allowed, and mean nothing here
			c.offset = e.end()
		}
		if err != nil {
			return err
		}
	}
}

// block checks the four entries of a block, whose first is given.
func (c *era1Check) block(first entry) error {
	if len(c.blocks) == maxEra1Blocks {
		return fmt.Errorf("a block more than the %d that an era has at most", maxEra1Blocks)
	}
	header, hash, err := c.header(first)
	if err != nil {
		return err
	}
	c.offset = first.end()
	body, err := c.entry(entryCompressedBody, "a compressed body")
	if err != nil {
		return err
	}
	c.offset = body.end()
	receipts, err := c.entry(entryCompressedReceipts, "compressed receipts")
	if err != nil {
		return err
	}
	c.offset = receipts.end()
	total, err := c.entry(entryTotalDifficulty, "a total difficulty")
	if err != nil {
		return err
	}
	if err := c.addDifficulty(total, header); err != nil {
		return err
	}
	c.accumulator.add(hash, &c.totalDifficulty)
	c.parent = hash
	c.blocks = append(c.blocks, era1Block{header: header, start: first.offset, body: body})
	c.offset = total.end()
	return nil
}

// header decodes a header and checks that it follows the one before.
func (c *era1Check) header(e entry) (*types.Header, common.Hash, error) {
	c.buf.Reset()
	if err := c.store.unzip(&c.buf, e, maxHeaderSize); err != nil {
		return nil, common.Hash{}, err
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(c.buf.Bytes(), header); err != nil {
		return nil, common.Hash{}, fmt.Errorf("no header of a block: %w", err)
	}
	if !header.Number.IsUint64() {
		return nil, common.Hash{}, fmt.Errorf("a header's number has %d bits; want at most 64", header.Number.BitLen())
	}
	if n := len(c.blocks); n > 0 {
		if want := c.blocks[n-1].header.Number.Uint64() + 1; header.Number.Uint64() != want {
			return nil, common.Hash{}, fmt.Errorf("the header of block %d; want that of block %d", header.Number, want)
		}
		if header.ParentHash != c.parent {
			return nil, common.Hash{}, fmt.Errorf("block %d has the parent %s; the block before it is %s", header.Number, header.ParentHash, c.parent)
		}
	}
	return header, crypto.Keccak256Hash(c.buf.Bytes()), nil
}

// addDifficulty checks a stored total difficulty against the headers. That of a
// file's first block has no header to stand on, unless it is the genesis block,
// and is only held by the accumulator.
func (c *era1Check) addDifficulty(e entry, header *types.Header) error {
	stored, err := c.store.word(e)
	if err != nil {
		return err
	}
	var total uint256.Int
	for i := range total {
		total[i] = binary.LittleEndian.Uint64(stored[8*i:])
	}
	own, overflow := uint256.FromBig(header.Difficulty)
	if overflow {
		return fmt.Errorf("block %d has a difficulty of %d bits; want at most 256", header.Number, header.Difficulty.BitLen())
	}
	if len(c.blocks) == 0 && header.Number.Sign() > 0 {
		c.totalDifficulty = total
		return nil
	}
	want, overflow := new(uint256.Int).AddOverflow(&c.totalDifficulty, own)
	if overflow {
		return fmt.Errorf("the total difficulty of block %d exceeds 256 bits", header.Number)
	}
	if total != *want {
		return fmt.Errorf("block %d has the total difficulty %s; the headers add up to %s", header.Number, total.Dec(), want.Dec())
	}
	c.totalDifficulty = total
	return nil
}

// end checks what follows the blocks: the accumulator, the index and nothing else.
func (c *era1Check) end(e entry) error {
	if len(c.blocks) == 0 {
		return errors.New("the accumulator before any block; want at least one block")
	}
	stored, err := c.store.word(e)
	if err != nil {
		return err
	}
	if root := c.accumulator.root(); root != stored {
		return fmt.Errorf("the accumulator is %#x; the headers give %#x", stored, root)
	}
	c.offset = e.end()
	index, err := c.entry(entryBlockIndex, "the block index")
	if err != nil {
		return err
	}
	if err := c.index(index); err != nil {
		return err
	}
	c.offset = index.end()
	if c.offset != c.store.size {
		return fmt.Errorf("%d bytes after the block index; want the end of the file", c.store.size-c.offset)
	}
	return nil
}

// index checks the block index: the first block's number, the offset of each
// block from the index's own, and their count.
func (c *era1Check) index(e entry) error {
	if want := 8 * int64(len(c.blocks)+2); e.length != want {
		return fmt.Errorf("the block index has %d bytes; want %d for %d blocks", e.length, want, len(c.blocks))
	}
	data := make([]byte, e.length)
	if err := c.store.readFull(data, e.data()); err != nil {
		return err
	}
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	first := c.blocks[0].header.Number.Uint64()
	if got := number(0); got != first {
		return fmt.Errorf("the block index begins with block %d; the first header is that of block %d", got, first)
	}
	for i, b := range c.blocks {
		if got := int64(number(1 + i)); got != b.start-e.offset {
			return fmt.Errorf("the block index has block %d at %d from itself; it is at %d", first+uint64(i), got, b.start-e.offset)
		}
	}
	if got := number(1 + len(c.blocks)); got != uint64(len(c.blocks)) {
		return fmt.Errorf("the block index counts %d blocks; there are %d", got, len(c.blocks))
	}
	return nil
}

// entry reads the head of the next entry, which must be of a kind.
func (c *era1Check) entry(kind uint16, name string) (entry, error) {
	e, err := c.store.at(c.offset)
	if err != nil {
		return entry{}, err
	}
	if e.kind != kind {
		return entry{}, fmt.Errorf("an entry of type %#x; want %s, type %#x", e.kind, name, kind)
	}
	return e, nil
}
