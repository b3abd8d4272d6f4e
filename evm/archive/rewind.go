package archive

import (
	"context"
	"iter"

	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Rewind removes every row of blocks after a settled one from a store that nobody else has
// open, or completes a rewind that was interrupted. It can give up a join that adds rows above
// the settled block.
func Rewind(ctx context.Context, store kv.Store, to uint64, progress *audit.Progress) (rewind.Done, error) {
	if err := rows.CheckFormat(ctx, store, formats()...); err != nil {
		return rewind.Done{}, err
	}
	extent, err := readExtent(ctx, store)
	if err != nil {
		return rewind.Done{}, err
	}
	if err := extent.checkTries(to); err != nil { // the blocks after it are executed on its state, for which they need its tries
		return rewind.Done{}, err
	}
	joining, under, err := readJoining(ctx, store)
	if err != nil {
		return rewind.Done{}, err
	}
	if under && !joining.Above {
		return rewind.Done{}, checkJoined(ctx, store)
	}
	history := newHistory(store, form{}) // for headers
	plan := rewind.Plan{
		To: to,
		Hash: func(ctx context.Context) (hash common.Hash, err error) {
			header, err := history.Header(ctx, to)
			if err == nil {
				hash = header.Hash
			}
			return hash, err
		},
		Tables: Tables(),
		Others: func(ctx context.Context) ([]rewind.Row, error) { return laterCodes(ctx, store, to, progress) },
	}
	if under {
		// While the epoch is odd: else a join could continue whose rows are removed.
		plan.Pointers = func(batch kv.Batch) { SetJoining(batch, nil) }
	}
	return rewind.Run(ctx, store, plan, progress)
}

// laterCodes returns the rows of codes that accounts have only after a block. Their sort
// keys do not name a block.
func laterCodes(ctx context.Context, store kv.Store, to uint64, progress *audit.Progress) (later []rewind.Row, err error) {
	progress.Begin(codes.Name, 1<<16)
	candidates, err := CodesAfter(ctx, store, to)
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	err = walkAccounts(store.Walk(ctx, accounts, 0), func(number uint64, code common.Hash) bool {
		if number <= to {
			delete(candidates, code)
		}
		return len(candidates) > 0
	})
	for hash := range candidates {
		later = append(later, rewind.Row{Table: codes, Partition: hash[:], Sort: 0})
	}
	return later, err
}

// CodesAfter returns the hashes of the codes that accounts have in versions after a block.
func CodesAfter(ctx context.Context, store kv.Store, block uint64) (map[common.Hash]struct{}, error) {
	used := make(map[common.Hash]struct{})
	// An account of a block whose settling was cut off may be at one node.
	err := walkAccounts(kv.WalkReplicas(ctx, store, accounts, block+1), func(_ uint64, code common.Hash) bool {
		used[code] = struct{}{}
		return true
	})
	delete(used, types.EmptyCodeHash)
	return used, err
}

// walkAccounts calls visit with the block and the code hash of each version of an account,
// until visit returns false.
func walkAccounts(walk iter.Seq2[kv.Row, error], visit func(number uint64, code common.Hash) bool) error {
	for row, err := range walk {
		if err != nil {
			return err
		}
		account, err := DecodeAccount(row.Value)
		if err != nil {
			return err
		}
		if account != nil && !visit(row.Sort, common.Hash(account.CodeHash)) {
			return nil
		}
	}
	return nil
}
