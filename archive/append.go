package archive

import (
	"context"
	"fmt"
	"math/big"

	"ashlar/archive/rows"
	"ashlar/chain/evm"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// Append settles blocks: all of them, and the settled pointer with them, become
// visible at once. They must follow one another and the last settled block, else
// ErrNotNext; nothing is written then. Durable they are once [Archive.Sync] returns.
// One call at a time.
func (a *Archive) Append(ctx context.Context, deltas ...*evm.Delta) error {
	if len(deltas) == 0 {
		return nil
	}
	batch := a.store.NewBatch()
	last := a.settled.Load()
	for _, delta := range deltas {
		next, err := a.put(batch, last, delta)
		if err != nil {
			return err
		}
		last = next
	}
	rows.SetSettled(batch, last.Ref)
	if err := a.store.Write(ctx, batch); err != nil {
		return fmt.Errorf("archive: append up to block %s: %w", last.Ref, err)
	}
	a.settled.Store(last)
	return nil
}

// Sync returns when everything that was appended is durable.
func (a *Archive) Sync(ctx context.Context) error { return a.store.Sync(ctx) }

// put puts the rows of a block that follows last into batch.
func (a *Archive) put(batch kv.Batch, last *settled, delta *evm.Delta) (*settled, error) {
	block := delta.Block
	next := &settled{Ref: delta.Ref(), totalDifficulty: new(big.Int).Set(block.Difficulty())}
	switch {
	case last == nil && next.Number != 0:
		return nil, fmt.Errorf("%w: block %s comes first, expected the genesis", ErrNotNext, next.Ref)
	case last != nil && (next.Number != last.Number+1 || block.ParentHash() != last.Hash):
		return nil, fmt.Errorf("%w: block %s with parent %x comes after block %s", ErrNotNext, next.Ref, block.ParentHash(), last.Ref)
	case last != nil:
		next.totalDifficulty.Add(next.totalDifficulty, last.totalDifficulty)
	}
	if err := putBlock(batch, delta, next.totalDifficulty); err != nil {
		return nil, err
	}
	putState(batch, delta)
	return next, nil
}

func putBlock(batch kv.Batch, delta *evm.Delta, totalDifficulty *big.Int) error {
	number, hash := delta.Block.NumberU64(), delta.Block.Hash()
	header, err := encodeHeader(delta.Block, totalDifficulty)
	if err != nil {
		return err
	}
	body, err := encodeBody(delta.Block, delta.Senders)
	if err != nil {
		return err
	}
	if n := len(delta.Block.Transactions()); n > rows.MostTransactions {
		return fmt.Errorf("archive: block %d has %d transactions, the format holds %d", number, n, rows.MostTransactions)
	}
	partition := rows.Chunk(number)
	batch.Put(headers, partition[:], number, header)
	batch.Put(bodies, partition[:], number, body)
	batch.Put(receipts, partition[:], number, encodeReceipts(delta.Receipts))
	rows.PutBlockHash(batch, blockHashes, hash[:], number)
	for i, transaction := range delta.Block.Transactions() {
		hash := transaction.Hash()
		rows.PutTransactionHash(batch, txHashes, hash[:], Place{Number: number, Index: i})
	}
	blockPostings(delta.Receipts).Put(batch, logPostings, number)
	return nil
}

func putState(batch kv.Batch, delta *evm.Delta) {
	number := delta.Block.NumberU64()
	var key, value []byte
	for address, account := range delta.Accounts {
		value = appendAccount(value[:0], account)
		batch.Put(accounts, address[:], number, value)
	}
	for address, changed := range delta.Slots {
		for slot, word := range changed {
			partition := slotKey(address, slot)
			batch.Put(slots, partition[:], number, common.TrimLeftZeroes(word[:]))
		}
	}
	for hash, code := range delta.Codes {
		batch.Put(codes, hash[:], 0, code)
	}
	for _, node := range delta.Nodes {
		var changed bool
		if value, changed = appendNode(value[:0], node); changed {
			key = appendNodeKey(key[:0], node.Owner, node.Path)
			batch.Put(trieNodes, key, number, value)
		}
	}
}
