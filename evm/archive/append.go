package archive

import (
	"context"
	"fmt"
	"math/big"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/history/rows"
	"ashlar/history/settling"
	"ashlar/kv"
	"ashlar/kv/newest"

	"github.com/ethereum/go-ethereum/common"
)

// Append settles blocks: all of them become visible at once, together with the settled
// pointer. They must be consecutive and follow the last settled block; otherwise Append
// writes nothing and returns ErrNotNext. They are durable after the next [Archive.Sync].
// An earlier append that failed is completed first. Append must not be called concurrently.
func (a *Archive) Append(ctx context.Context, deltas ...*evm.Delta) error {
	if len(deltas) == 0 {
		return nil
	}
	if err := a.Complete(ctx); err != nil {
		return err
	}
	batch := a.emptyBatch()
	last := a.settled.Load()
	before := State{history: &a.History} // unused before the genesis
	if last != nil {
		before.number = last.Number
	}
	a.steps.begin(ctx, before)
	to := a.newest.Write(batch)
	for _, delta := range deltas {
		next, err := a.put(to, last, delta)
		if err != nil {
			a.steps.forget()
			return err
		}
		last = next
	}
	rows.SetSettled(batch, last.Ref)
	refs := make([]chain.Ref, len(deltas))
	for i, delta := range deltas {
		refs[i] = delta.Ref()
	}
	if err := a.write(ctx, refs, appended{to, last}); err != nil {
		a.steps.forget()
		return err
	}
	return nil
}

// appended is what an append adds, besides the rows in the archive's batch.
type appended struct {
	written *newest.Written
	last    *settled
}

// write writes the rows of blocks that are in the archive's batch, with the settled pointer.
func (a *Archive) write(ctx context.Context, blocks []chain.Ref, added appended) error {
	if err := settling.Begin(ctx, a.store, Tables(), blocks); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	a.doubtful = &added
	return a.Complete(ctx)
}

// Doubtful returns the last block of an append whose write failed: it may be settled in the store
// all the same, or become so later. [Archive.Complete] ends that.
func (a *Archive) Doubtful() (chain.Ref, bool) {
	if a.doubtful == nil {
		return chain.Ref{}, false
	}
	return a.doubtful.last.Ref, true
}

// Complete makes again the write of the last append, if it failed. To read what is stored would not
// do: the store may still apply the write, but before the same one or another at the latest. Other
// blocks must not be written in the place of these before Complete has succeeded.
func (a *Archive) Complete(ctx context.Context) error {
	added := a.doubtful
	if added == nil {
		return nil
	}
	if err := a.store.Write(ctx, a.batch); err != nil {
		return fmt.Errorf("archive: append up to block %s: %w", added.last.Ref, err)
	}
	added.written.Settled(added.last.Number)
	a.settled.Store(added.last)
	a.doubtful = nil
	return nil
}

// emptyBatch returns the batch of every append, whose memory is used again.
func (a *Archive) emptyBatch() kv.Batch {
	if a.batch == nil {
		a.batch = a.store.NewBatch()
	}
	a.batch.Reset()
	return a.batch
}

// Encoded is a block with rows made by [History.Encode].
type Encoded = rows.Encoded

// AppendEncoded is [Archive.Append] for blocks that are already encoded.
func (a *Archive) AppendEncoded(ctx context.Context, blocks ...Encoded) error {
	if len(blocks) == 0 {
		return nil
	}
	if err := a.Complete(ctx); err != nil {
		return err
	}
	last := a.settled.Load()
	if last == nil {
		return fmt.Errorf("%w: block %s comes first, expected the genesis", ErrNotNext, blocks[0].Ref())
	}
	a.steps.forget()
	batch, ref := a.emptyBatch(), last.Ref
	to := &lastHeader{Written: a.newest.Write(batch)}
	refs := make([]chain.Ref, 0, len(blocks))
	for _, block := range blocks {
		if block.Ref().Number != ref.Number+1 || block.Parent() != ref.Hash {
			return notNext(block.Ref(), block.Parent(), ref)
		}
		ref = block.Ref()
		refs = append(refs, ref)
		block.PutRows(to)
	}
	rows.SetSettled(batch, ref)
	header, err := decodeHeader(to.row)
	if err != nil {
		return err
	}
	return a.write(ctx, refs, appended{to.Written, &settled{Ref: ref, totalDifficulty: header.TotalDifficulty}})
}

// lastHeader remembers the last row of the headers table that is put.
type lastHeader struct {
	*newest.Written
	row []byte
}

// Put implements [kv.Putter].
func (h *lastHeader) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	h.Written.Put(t, partition, sort, value)
	if t == headers {
		h.row = append(h.row[:0], value...)
	}
}

func notNext(ref chain.Ref, parent common.Hash, last chain.Ref) error {
	return fmt.Errorf("%w: block %s with parent %x comes after block %s", ErrNotNext, ref, parent, last)
}

// Sync returns when everything appended is durable.
func (a *Archive) Sync(ctx context.Context) error { return a.store.Sync(ctx) }

// put puts the rows of a block that follows last into batch.
func (a *Archive) put(batch kv.Putter, last *settled, delta *evm.Delta) (*settled, error) {
	block := delta.Block
	next := &settled{Ref: delta.Ref(), totalDifficulty: new(big.Int).Set(block.Difficulty())}
	switch {
	case last == nil && next.Number != 0:
		return nil, fmt.Errorf("%w: block %s comes first, expected the genesis", ErrNotNext, next.Ref)
	case last != nil && (next.Number != last.Number+1 || block.ParentHash() != last.Hash):
		return nil, notNext(next.Ref, block.ParentHash(), last.Ref)
	case last != nil:
		next.totalDifficulty.Add(next.totalDifficulty, last.totalDifficulty)
	}
	if err := a.EncodeBlock(batch, delta, next.totalDifficulty); err != nil {
		return nil, err
	}
	if err := a.putTraces(batch, delta); err != nil {
		return nil, err
	}
	return next, putState(batch, delta, &a.steps)
}

// Encode writes all rows of a block whose parent is the history's last block.
// totalDifficulty is that of the chain including the block.
func (h *History) Encode(ctx context.Context, to kv.Putter, delta *evm.Delta, totalDifficulty *big.Int) error {
	if err := h.EncodeBlock(to, delta, totalDifficulty); err != nil {
		return err
	}
	if err := h.putTraces(to, delta); err != nil {
		return err
	}
	return putState(to, delta, storedSteps{ctx, h.StateAt(delta.Block.NumberU64() - 1)})
}

// EncodeBlock writes the rows of a block to the tables of [TableSet.Own] and
// [TableSet.Derived].
func (h *History) EncodeBlock(to kv.Putter, delta *evm.Delta, totalDifficulty *big.Int) error {
	return encodeBlock(to, delta, totalDifficulty, h.form)
}

func encodeBlock(to kv.Putter, delta *evm.Delta, totalDifficulty *big.Int, f form) error {
	if block := delta.Block.Header(); (block.BlockAccessListHash != nil) != (delta.AccessList != nil) {
		return fmt.Errorf("archive: block %d: its header names the access list hash %v, its list has %d bytes", block.Number, block.BlockAccessListHash, len(delta.AccessList))
	}
	return encodeContents(to, delta, totalDifficulty, f)
}

// EncodeContents is [History.EncodeBlock] for a block that is not stored, and whose access
// list may be left out.
func EncodeContents(to kv.Putter, delta *evm.Delta, totalDifficulty *big.Int) error {
	return encodeContents(to, delta, totalDifficulty, newForm(nil))
}

func encodeContents(to kv.Putter, delta *evm.Delta, totalDifficulty *big.Int, f form) error {
	number, hash := delta.Block.NumberU64(), delta.Block.Hash()
	header, err := encodeHeader(delta.Block, totalDifficulty)
	if err != nil {
		return err
	}
	body, err := encodeBody(delta.Block, delta.Senders)
	if err != nil {
		return err
	}
	if number > rows.MaxNumber {
		return fmt.Errorf("archive: block %d: the format supports numbers up to %d", number, uint64(rows.MaxNumber))
	}
	if n := len(delta.Block.Transactions()); n > rows.MaxTransactions {
		return fmt.Errorf("archive: block %d has %d transactions, the format supports at most %d", number, n, rows.MaxTransactions)
	}
	named := delta.Block.Transactions() // whose hashes are stored with their receipts
	if !f.hashes {
		named = nil
	}
	partition := rows.Chunk(number)
	to.Put(headers, partition[:], number, header)
	to.Put(bodies, partition[:], number, body)
	to.Put(receipts, partition[:], number, encodeReceipts(delta.Receipts, named))
	if delta.AccessList != nil {
		to.Put(accessLists, partition[:], number, delta.AccessList)
	}
	rows.PutBlockHash(to, blockHashes, hash[:], number)
	for i, transaction := range delta.Block.Transactions() {
		hash := transaction.Hash()
		rows.PutTransactionHash(to, txHashes, hash[:], Place{Number: number, Index: i})
	}
	for term, row := range blockPostings(delta.Receipts).Rows() {
		to.Put(logPostings, term[:], number, row)
	}
	return nil
}

func putState(to kv.Putter, delta *evm.Delta, stored nodeSteps) (err error) {
	number := delta.Block.NumberU64()
	var key, value []byte
	for address, account := range delta.Accounts {
		value = AppendAccount(value[:0], account)
		to.Put(accounts, address[:], number, value)
	}
	for address, changed := range delta.Slots {
		for slot, word := range changed {
			partition := slotKey(address, slot)
			to.Put(slots, partition[:], number, common.TrimLeftZeroes(word[:]))
		}
	}
	for hash, code := range delta.Codes {
		to.Put(codes, hash[:], 0, code)
	}
	for _, node := range delta.Nodes {
		var changed bool
		key = appendNodeKey(key[:0], node.Owner, node.Path)
		if value, changed, err = appendNode(value[:0], key, number, node, stored); err != nil {
			return fmt.Errorf("archive: encode block %s: %w", delta.Ref(), err)
		}
		if changed {
			to.Put(trieNodes, key, number, value)
		}
	}
	return nil
}
