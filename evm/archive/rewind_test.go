package archive

import (
	"context"
	"iter"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// A crash while a block settled has left one of its accounts at one of several nodes, where a walk by a quorum does not see
// it. A rewind removes its code too.
func TestCodesOfAccountsAtOneNode(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	batch := store.NewBatch()
	earlier, later := common.Hash{1}, common.Hash{2}
	put := func(name byte, number uint64, code common.Hash) {
		account := types.StateAccount{Balance: new(uint256.Int), Root: types.EmptyRootHash, CodeHash: code[:]}
		address := common.Hash{name}
		batch.Put(accounts, address[:], number, AppendAccount(nil, &account))
	}
	put('a', 3, earlier)
	put('b', 4, earlier)
	put('c', 4, later)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	rows, err := laterCodes(t.Context(), &oneNode{store, 3}, 3, nil)
	if err != nil || len(rows) != 1 || common.Hash(rows[0].Partition) != later {
		t.Errorf("codes %v, %v, expected %x alone", rows, err, later)
	}
}

// oneNode is a store in which one node alone has the accounts of blocks after one.
type oneNode struct {
	kv.Store
	last uint64
}

// Walk implements kv.Store.
func (o *oneNode) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range o.Store.Walk(ctx, t, from) {
			if err == nil && t == accounts && row.Sort > o.last {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// WalkReplicas implements kv.Replicated.
func (o *oneNode) WalkReplicas(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return o.Store.Walk(ctx, t, from)
}
