package blocktests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// checkLists holds, for a chain that has been imported without access lists, that the
// stored lists are those of the test; that an import with the lists gives the same rows;
// and that wrong lists are refused. Chains before Amsterdam pass.
func (t *target) checkLists(ctx context.Context, dir string, genesis *core.Genesis, chain []*types.Block) error {
	listed := 0
	for _, block := range chain {
		if block.AccessList() == nil {
			continue
		}
		listed++
		want, err := rlp.EncodeToBytes(block.AccessList())
		if err != nil {
			return err
		}
		got, err := t.archive.AccessList(ctx, block.NumberU64())
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("block %d: stored access list %x, want %x", block.NumberU64(), got, want)
		}
	}
	if listed == 0 {
		return nil
	}
	if err := t.checkParallel(ctx, dir, genesis, chain, listed); err != nil {
		return err
	}
	// A few changes of each test's list will do: TestLists makes all of them.
	last := chain[len(chain)-1]
	var some []listChange
	for i, change := range listChanges() {
		if (i+int(last.Hash()[0]))%8 == 0 {
			some = append(some, change)
		}
	}
	return t.checkWrongLists(ctx, last, some)
}

// checkParallel imports a chain again, with its access lists.
func (t *target) checkParallel(ctx context.Context, dir string, genesis *core.Genesis, chain []*types.Block, listed int) (err error) {
	store, err := openSmall()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	parallel, err := newTarget(ctx, dir, store, genesis)
	if err != nil {
		return err
	}
	parallel.importer.Processors = 3
	if err := parallel.importer.Import(ctx, ingesttest.SourceOf(chain)); err != nil {
		return fmt.Errorf("import with access lists: %w", err)
	}
	if _, got := parallel.executor.ListedBlocks(); got != uint64(listed) {
		return fmt.Errorf("%d blocks ran in parallel, want all %d with lists", got, listed)
	}
	return sameRows(ctx, parallel.store, t.store)
}

// sameRows compares two stores row by row.
func sameRows(ctx context.Context, got, want kv.Store) error {
	for _, table := range archive.Tables() {
		rows := make(map[string][]byte)
		key := func(row kv.Row) string { return fmt.Sprintf("%x/%d", row.Partition, row.Sort) }
		for row, err := range want.Walk(ctx, table, 0) {
			if err != nil {
				return err
			}
			rows[key(row)] = bytes.Clone(row.Value)
		}
		for row, err := range got.Walk(ctx, table, 0) {
			if err != nil {
				return err
			}
			value, ok := rows[key(row)]
			if !ok || !bytes.Equal(value, row.Value) {
				return fmt.Errorf("%s: %s is %x in parallel, %x in order", table.Name, archive.DescribeKey(table, row.Partition, row.Sort), row.Value, value)
			}
			delete(rows, key(row))
		}
		if len(rows) > 0 {
			return fmt.Errorf("%s: %d rows are missing after the parallel import", table.Name, len(rows))
		}
	}
	return nil
}

// checkWrongLists makes the changes that apply to the access list of the last block. A header with the hash of the wrong list does not help: the block is refused, with the
// list and without it.
func (t *target) checkWrongLists(ctx context.Context, block *types.Block, changes []listChange) error {
	for _, change := range changes {
		list := block.AccessList().Copy()
		if !change.apply(list) {
			continue
		}
		hash := list.Hash()
		header := types.CopyHeader(block.Header())
		header.BlockAccessListHash = &hash
		wrong := types.NewBlockWithHeader(header).WithBody(*block.Body())
		for name, wrong := range map[string]*types.Block{"with": wrong.WithAccessListUnsafe(list), "without": wrong} {
			var refused *execute.CheckError
			err := t.execute(ctx, wrong)
			if !errors.As(err, &refused) || refused.Check != execute.CheckAccessList {
				return fmt.Errorf("block %d %s the list, %s: %v, want a refusal by the check %q", block.NumberU64(), name, change.name, err, execute.CheckAccessList)
			}
		}
		// With the right header the list is refused before the block runs.
		if err := t.execute(ctx, block.WithAccessListUnsafe(list)); err == nil {
			return fmt.Errorf("block %d, %s: accepted a list that is not the header's", block.NumberU64(), change.name)
		}
	}
	return nil
}

// execute verifies and executes a block on its parent in the archive.
func (t *target) execute(ctx context.Context, block *types.Block) error {
	if err := t.executor.VerifyBody(block); err != nil {
		return err
	}
	header, err := t.archive.Header(ctx, block.NumberU64()-1)
	if err != nil {
		return err
	}
	_, err = t.executor.Execute(ctx, execute.Parent{
		Header: header.Header, State: t.archive.StateAt(header.Number.Uint64()),
		Ancestors: archive.Ancestors{History: &t.archive.History}, TotalDifficulty: header.TotalDifficulty,
	}, block, 3)
	return err
}

// listChange makes an access list wrong, or returns false if it does not apply.
type listChange struct {
	name  string
	apply func(*bal.BlockAccessList) bool
}

func listChanges() []listChange {
	one := uint256.NewInt(1)
	// account applies a change to the first account to which it applies.
	account := func(name string, change func(*bal.AccountAccess) bool) listChange {
		return listChange{name, func(list *bal.BlockAccessList) bool {
			for i := range *list {
				if change(&(*list)[i]) {
					return true
				}
			}
			return false
		}}
	}
	return []listChange{
		{"account missing", func(l *bal.BlockAccessList) bool { *l = slices.Delete(*l, len(*l)/2, len(*l)/2+1); return true }},
		{"account extra", func(l *bal.BlockAccessList) bool {
			*l = append(*l, bal.AccountAccess{Address: common.MaxAddress})
			return true
		}},
		{"accounts reordered", func(l *bal.BlockAccessList) bool { (*l)[0], (*l)[1] = (*l)[1], (*l)[0]; return true }},
		{"account twice", func(l *bal.BlockAccessList) bool { *l = slices.Insert(*l, 1, (*l)[0]); return true }},
		{"accounts gone", func(l *bal.BlockAccessList) bool { *l = nil; return true }},
		account("read missing", func(a *bal.AccountAccess) bool {
			had := len(a.StorageReads) > 0
			a.StorageReads = a.StorageReads[:max(0, len(a.StorageReads)-1)]
			return had
		}),
		account("read extra", func(a *bal.AccountAccess) bool {
			a.StorageReads = append(a.StorageReads, new(uint256.Int).Not(new(uint256.Int)))
			return true
		}),
		account("reads reordered", func(a *bal.AccountAccess) bool {
			slices.Reverse(a.StorageReads)
			return len(a.StorageReads) > 1
		}),
		account("write missing", func(a *bal.AccountAccess) bool {
			had := len(a.StorageChanges) > 0
			a.StorageChanges = a.StorageChanges[:max(0, len(a.StorageChanges)-1)]
			return had
		}),
		account("wrong slot", func(a *bal.AccountAccess) bool {
			return len(a.StorageChanges) > 0 && a.StorageChanges[0].Slot.AddUint64(a.StorageChanges[0].Slot, 3) != nil
		}),
		account("wrong slot value", func(a *bal.AccountAccess) bool {
			return len(a.StorageChanges) > 0 && a.StorageChanges[0].SlotChanges[0].PostValue.Xor(a.StorageChanges[0].SlotChanges[0].PostValue, one) != nil
		}),
		account("wrong slot index", func(a *bal.AccountAccess) bool {
			if len(a.StorageChanges) > 0 {
				a.StorageChanges[0].SlotChanges[0].BlockAccessIndex ^= 1
			}
			return len(a.StorageChanges) > 0
		}),
		account("slot change twice", func(a *bal.AccountAccess) bool {
			if len(a.StorageChanges) > 0 {
				changes := &a.StorageChanges[0].SlotChanges
				*changes = append(*changes, (*changes)[len(*changes)-1])
			}
			return len(a.StorageChanges) > 0
		}),
		account("wrong balance", func(a *bal.AccountAccess) bool {
			return len(a.BalanceChanges) > 0 && a.BalanceChanges[0].PostBalance.Xor(a.BalanceChanges[0].PostBalance, one) != nil
		}),
		account("wrong balance index", func(a *bal.AccountAccess) bool {
			if len(a.BalanceChanges) > 0 {
				a.BalanceChanges[0].BlockAccessIndex--
			}
			return len(a.BalanceChanges) > 0
		}),
		account("balance index behind the block", func(a *bal.AccountAccess) bool {
			if n := len(a.BalanceChanges); n > 0 {
				a.BalanceChanges[n-1].BlockAccessIndex += 1000
			}
			return len(a.BalanceChanges) > 0
		}),
		account("balance change missing", func(a *bal.AccountAccess) bool {
			had := len(a.BalanceChanges) > 0
			a.BalanceChanges = a.BalanceChanges[:max(0, len(a.BalanceChanges)-1)]
			return had
		}),
		account("wrong nonce", func(a *bal.AccountAccess) bool {
			if len(a.NonceChanges) > 0 {
				a.NonceChanges[0].PostNonce++
			}
			return len(a.NonceChanges) > 0
		}),
		account("nonce change missing", func(a *bal.AccountAccess) bool {
			had := len(a.NonceChanges) > 0
			a.NonceChanges = nil
			return had
		}),
		account("wrong code", func(a *bal.AccountAccess) bool {
			if len(a.CodeChanges) > 0 {
				a.CodeChanges[0].NewCode = append(bytes.Clone(a.CodeChanges[0].NewCode), 0)
			}
			return len(a.CodeChanges) > 0
		}),
		account("code change missing", func(a *bal.AccountAccess) bool {
			had := len(a.CodeChanges) > 0
			a.CodeChanges = nil
			return had
		}),
	}
}

// TestLists makes the checks of access lists on a chain for which all changes of a
// list apply.
func TestLists(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	target := targetOf(t, genesis, blocks)
	if err := target.checkLists(t.Context(), t.TempDir(), genesis, blocks); err != nil {
		t.Error(err)
	}
	last := blocks[len(blocks)-1]
	for _, change := range listChanges() {
		if !change.apply(last.AccessList().Copy()) {
			t.Errorf("%s: does not apply to the last block", change.name)
		}
	}
	if err := target.checkWrongLists(t.Context(), last, listChanges()); err != nil {
		t.Error(err)
	}
}
