package tip

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// unsettled holds the blocks of the tip, each in a partition of its own and split into
// parts. docs/format.md draws it.
var unsettled = &kv.Table{ID: 0x60, Name: "unsettled_blocks", Kind: kv.List, Transient: true}

// Tables lists this package's tables, for maintenance.
func Tables() []*kv.Table { return []*kv.Table{unsettled} }

// pointerTip lists the blocks of the tip and identifies the head, safe and finalized blocks.
const pointerTip = "tip"

const (
	partBytes = 1 << 20 // maximum size of a part
	refBytes  = 8 + common.HashLength

	sequenceBytes = 8
)

// tables finds tables by ID.
type tables [256]*kv.Table

func newTables(list []*kv.Table) *tables {
	t := new(tables)
	for _, table := range list {
		t[table.ID] = table
	}
	return t
}

func appendRef(dst []byte, ref chain.Ref) []byte {
	return append(binary.BigEndian.AppendUint64(dst, ref.Number), ref.Hash[:]...)
}

// takeRef decodes the ref at the beginning of b, which must be long enough.
func takeRef(b []byte) (chain.Ref, []byte) {
	return chain.Ref{Number: binary.BigEndian.Uint64(b), Hash: common.Hash(b[8:refBytes])}, b[refBytes:]
}

// encode returns the value of the tip's pointer.
func (n *tree) encode() []byte {
	value := make([]byte, 0, (3+len(n.blocks))*refBytes+sequenceBytes)
	value = appendRef(value, n.head.Ref())
	value = appendRef(value, n.safe)
	value = appendRef(value, n.finalized)
	for _, block := range n.blocks {
		value = appendRef(value, block.ref)
	}
	return binary.BigEndian.AppendUint64(value, n.sequence)
}

// put adds the block's parts to a batch.
func (b *Block) put(batch kv.Batch) {
	whole := binary.AppendUvarint(nil, uint64(len(b.encoded)))
	whole = append(append(whole, b.parent[:]...), b.encoded...)
	var part uint64
	for chunk := range slices.Chunk(whole, partBytes) {
		batch.Put(unsettled, b.ref.Hash[:], part, chunk)
		part++
	}
}

// EachRow calls each with the rows that a stored block has. It returns ErrUnknownBlock if
// the block is not stored.
func EachRow(ctx context.Context, store kv.Store, tables []*kv.Table, ref chain.Ref, each func(*kv.Table, kv.Row)) error {
	cursor := store.Scan(ctx, unsettled, ref.Hash[:], 0, 0)
	exists := cursor.Next()
	if err := cursor.Close(); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	if !exists {
		return fmt.Errorf("%w: %s", ErrUnknownBlock, ref)
	}
	t := &Tip{store: store, tables: newTables(tables)}
	block, err := t.loadBlock(ctx, ref)
	if err != nil {
		return err
	}
	block.eachRow(func(t *kv.Table, r kv.Row) bool { each(t, r); return true })
	return nil
}

// loadBlock reads a block.
func (t *Tip) loadBlock(ctx context.Context, ref chain.Ref) (*Block, error) {
	var whole []byte
	cursor := t.store.Scan(ctx, unsettled, ref.Hash[:], 0, ^uint64(0))
	defer cursor.Close()
	for ok := cursor.Next(); ok; ok = cursor.Next() {
		whole = append(whole, cursor.Value()...)
	}
	if err := cursor.Close(); err != nil {
		return nil, fmt.Errorf("tip: %w", err)
	}
	length, n := binary.Uvarint(whole)
	if n <= 0 || len(whole) < n+common.HashLength || uint64(len(whole)-n-common.HashLength) != length {
		return nil, fmt.Errorf("%w: block %s: %d bytes in its parts, which declare %d bytes of rows", ErrCorrupt, ref, len(whole), length)
	}
	whole = whole[n:]
	return newBlock(ref, common.Hash(whole), whole[common.HashLength:], t.tables)
}

// decodeRows decodes the rows of a block. The result aliases encoded.
func decodeRows(encoded []byte, tables *tables) ([]row, error) {
	var rows []row
	rest, failed := encoded, false
	number := func() uint64 {
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			failed = true
			return 0
		}
		rest = rest[n:]
		return value
	}
	take := func(n uint64) []byte {
		if uint64(len(rest)) < n {
			failed = true
			return nil
		}
		taken := rest[:n:n]
		rest = rest[n:]
		return taken
	}
	for len(rest) > 0 {
		key := take(number())
		row := row{key: key, sort: number(), value: take(number())}
		if failed || len(key) == 0 || len(key) > maxKey || tables[key[0]] == nil {
			return nil, fmt.Errorf("%w: row %d does not decode, or its table is unknown", ErrCorrupt, len(rows))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// pointed is the decoded value of the tip's pointer.
type pointed struct {
	head, safe, finalized chain.Ref
	blocks                []chain.Ref // parents before their children
	sequence              uint64      // 0 if an older version wrote the pointer
}

func decodePointer(value []byte) (p pointed, err error) {
	switch rest := len(value) % refBytes; {
	case len(value) < 3*refBytes || rest != 0 && rest != sequenceBytes:
		return p, fmt.Errorf("%w: the pointer has %d bytes, expected a multiple of %d, at least %d, and %d more", ErrCorrupt, len(value), refBytes, 3*refBytes, sequenceBytes)
	case rest == sequenceBytes:
		p.sequence = binary.BigEndian.Uint64(value[len(value)-sequenceBytes:])
		value = value[:len(value)-sequenceBytes]
	}
	p.head, value = takeRef(value)
	p.safe, value = takeRef(value)
	p.finalized, value = takeRef(value)
	for len(value) > 0 {
		var ref chain.Ref
		ref, value = takeRef(value)
		p.blocks = append(p.blocks, ref)
	}
	slices.SortFunc(p.blocks, func(a, b chain.Ref) int { return bytes.Compare(appendRef(nil, a), appendRef(nil, b)) })
	return p, nil
}

// build builds a stored tree, without the blocks that do not descend from settled. It reads
// those that are not known.
func (t *Tip) build(ctx context.Context, p pointed, settled chain.Ref, known map[common.Hash]*Block) (*tree, error) {
	n := &tree{settled: settled, blocks: make(map[common.Hash]*Block), safe: p.safe, finalized: p.finalized, sequence: p.sequence}
	for _, ref := range p.blocks {
		if ref.Number <= settled.Number {
			continue
		}
		block := known[ref.Hash]
		if block == nil {
			var err error
			if block, err = t.loadBlock(ctx, ref); err != nil {
				return nil, err
			}
		}
		_, follows := n.blocks[block.parent]
		switch {
		case !follows && (block.parent != settled.Hash || ref.Number != settled.Number+1):
		case known[ref.Hash] != nil:
			n.blocks[ref.Hash] = block // already merged with those below
		default:
			n.add(block)
		}
	}
	var err error
	if n.head, err = n.branch(p.head.Hash); errors.Is(err, ErrUnknownBlock) {
		n.head, err = n.branch(settled.Hash) // the head was settled or overtaken
	}
	return n, err
}

// load reads the stored tree, except for blocks that do not descend from settled, and
// removes the others.
func (t *Tip) load(ctx context.Context, settled chain.Ref) (*tree, error) {
	value, err := t.store.Pointer(ctx, pointerTip)
	if errors.Is(err, kv.ErrNotFound) {
		value, err = make([]byte, 3*refBytes), nil
	}
	if err != nil {
		return nil, fmt.Errorf("tip: %w", err)
	}
	stored, err := decodePointer(value)
	if err != nil {
		return nil, err
	}
	t.sequence = stored.sequence
	n, err := t.build(ctx, stored, settled, nil)
	if err == nil && len(n.blocks) < len(stored.blocks) {
		err = t.save(ctx, t.store.NewBatch(), n)
	}
	if err != nil {
		return nil, err
	}
	return n, t.removeStale(ctx, n)
}

// removeStale removes stored blocks that are not in the tree, because of a crash before their
// removal. The stored pointer must not refer to them any more.
func (t *Tip) removeStale(ctx context.Context, n *tree) error {
	strays := make(map[common.Hash]struct{})
	for row, err := range t.store.Walk(ctx, unsettled, 0) {
		if err != nil {
			return fmt.Errorf("tip: %w", err)
		}
		hash := common.BytesToHash(row.Partition)
		if n.blocks[hash] == nil {
			strays[hash] = struct{}{}
		}
	}
	for hash := range strays {
		if err := t.store.Drop(ctx, unsettled, hash[:]); err != nil {
			return fmt.Errorf("tip: %w", err)
		}
	}
	return nil
}

// Clear removes all blocks of the tip from a store on which no Tip is open. settled is the
// archive's last block.
func Clear(ctx context.Context, store kv.Store, settled chain.Ref) error {
	t := &Tip{store: store}
	n := &tree{settled: settled, head: newBranch(settled, nil)}
	value, err := store.Pointer(ctx, pointerTip)
	switch {
	case err == nil:
		// Even if the pointer does not decode, it is replaced.
		if stored, err := decodePointer(value); err == nil {
			t.sequence = stored.sequence
		}
		err = t.save(ctx, store.NewBatch(), n)
	case errors.Is(err, kv.ErrNotFound): // nothing followed a source yet
		err = nil
	}
	if err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	return t.removeStale(ctx, n)
}
