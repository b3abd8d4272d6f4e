package blocktests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// result is what the blocks of tests came to.
type result struct {
	valid    int // blocks that were imported with all that was expected of them,
	aside    int // those of them that do not lead to the test's last block
	refused  int // for the reason that the test gives,
	repaired int // those of them whose transactions' root had to be put right before
	skipped  int // transactions that were traced without running those before them
}

func (r *result) add(other result) {
	r.valid += other.valid
	r.aside += other.aside
	r.refused += other.refused
	r.repaired += other.repaired
	r.skipped += other.skipped
}

// run imports the blocks of a test by files in dir. The error says all that was not as
// the test expects.
func run(ctx context.Context, dir string, v *vector) (r result, err error) {
	genesis, err := v.genesis()
	if err != nil {
		return r, err
	}
	plan, err := newPlan(v, genesis.ToBlock().Hash())
	if err != nil {
		return r, err
	}
	seen := make(map[common.Hash]bool)
	for i, blocks := range plan.chains {
		imported, err := runChain(ctx, dir, v, genesis, plan, i)
		r.add(imported)
		if err != nil {
			return r, fmt.Errorf("the chain to block %x: %w", lastOf(blocks, genesis), err)
		}
		for _, block := range blocks {
			if !seen[block.Hash()] {
				r.valid++
				if i > 0 {
					r.aside++
				}
			}
			seen[block.Hash()] = true
		}
	}
	return r, nil
}

func lastOf(blocks []*types.Block, genesis *core.Genesis) common.Hash {
	if len(blocks) == 0 {
		return genesis.ToBlock().Hash()
	}
	return blocks[len(blocks)-1].Hash()
}

// openSmall opens a store in memory that takes little of it.
func openSmall() (kv.Store, error) {
	return pebble.Open(pebble.Options{Path: "network", FS: vfs.NewMem(), Options: kv.Options{CacheBytes: 1 << 20, BufferBytes: 1 << 20}})
}

// runChain imports one of a plan's chains into an archive of its own.
func runChain(ctx context.Context, dir string, v *vector, genesis *core.Genesis, plan *plan, i int) (r result, err error) {
	store, err := openSmall()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	target, err := newTarget(ctx, dir, store, genesis)
	if err != nil {
		return r, err
	}
	blocks := plan.chains[i]
	if err := target.importChain(ctx, blocks, plan.bad, &r); err != nil {
		return r, err
	}
	if i == 0 {
		for _, b := range plan.unlinked {
			if err := target.refuse(ctx, nil, b, &r); err != nil {
				return r, err
			}
		}
	}
	head, _ := target.archive.Settled()
	if head.Hash != lastOf(blocks, genesis) {
		return r, fmt.Errorf("the head is %s, expected %x", head, lastOf(blocks, genesis))
	}
	errs := []error{target.checkBlocks(ctx, blocks), target.checkTries(ctx, head.Number), target.checkLists(ctx, dir, genesis, blocks), target.checkChanges(ctx, blocks, &r)}
	if i == 0 {
		errs = append(errs, target.checkState(ctx, v.PostState))
	}
	return r, errors.Join(errs...)
}

// target is an archive that is imported into, as a user's is.
type target struct {
	dir      string // for the files that are imported
	store    kv.Store
	archive  *archive.Archive
	executor *execute.Executor
	importer *ingest.Importer
}

func newTarget(ctx context.Context, dir string, store kv.Store, genesis *core.Genesis) (*target, error) {
	a, err := archive.Create(ctx, store, genesis, archive.TraceIndex)
	if err != nil {
		return nil, err
	}
	executor, err := execute.New(genesis.Config, execute.RecordTraces(true))
	if err != nil {
		return nil, err
	}
	importer, err := ingest.New(ctx, a, executor, genesis)
	return &target{dir: dir, store: store, archive: a, executor: executor, importer: importer}, err
}

// targetOf returns a target of a test itself, which has imported blocks.
func targetOf(t *testing.T, genesis *core.Genesis, blocks []*types.Block) *target {
	t.Helper()
	store, err := openSmall()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	target, err := newTarget(t.Context(), t.TempDir(), store, genesis)
	if err == nil {
		err = target.importBlocks(t.Context(), blocks, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// importBlocks imports blocks, and one more that is encoded, if there is one, from a
// file, as a chain export has them.
func (t *target) importBlocks(ctx context.Context, blocks []*types.Block, last []byte) (err error) {
	var export []byte
	for _, block := range blocks {
		encoded, err := rlp.EncodeToBytes(block)
		if err != nil {
			return err
		}
		export = append(export, encoded...)
	}
	if export = append(export, last...); len(export) == 0 {
		return nil // not a file that the service would take for an export
	}
	path := filepath.Join(t.dir, "chain.rlp")
	if err := os.WriteFile(path, export, 0o600); err != nil {
		return err
	}
	source, err := file.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return t.importer.Import(ctx, source)
}

// importChain imports a chain. Where blocks that must be refused have their
// parent, the import of the chain up to there ends with the first of them, the others
// are tried alone, and the next import goes on.
func (t *target) importChain(ctx context.Context, blocks []*types.Block, bad map[common.Hash][]bad, r *result) error {
	head, _ := t.archive.Settled()
	begin := 0
	for i := range len(blocks) + 1 {
		if i > 0 {
			head.Hash = blocks[i-1].Hash()
		}
		for _, b := range bad[head.Hash] {
			if err := t.refuse(ctx, blocks[begin:i], b, r); err != nil {
				return err
			}
			begin = i
		}
		delete(bad, head.Hash) // another chain may come by here
	}
	if err := t.importBlocks(ctx, blocks[begin:], nil); err != nil {
		return err
	}
	if err := t.importBlocks(ctx, blocks, nil); err != nil {
		return fmt.Errorf("import again what is there already: %w", err)
	}
	return nil
}

// refuse imports blocks and one after them that must be refused.
func (t *target) refuse(ctx context.Context, before []*types.Block, b bad, r *result) error {
	parent, _ := t.archive.Settled()
	if len(before) > 0 {
		parent = chain.Ref{Number: before[len(before)-1].NumberU64(), Hash: before[len(before)-1].Hash()}
	}
	err := t.importBlocks(ctx, before, b.RLP)
	if head, _ := t.archive.Settled(); head != parent {
		return fmt.Errorf("the head is %s after a block was refused, expected %s (%w)", head, parent, err)
	}
	if repaired := repair(b); repaired != nil && checkOf(err) == execute.CheckTransactionsRoot {
		r.repaired++
		b = *repaired
		err = t.importBlocks(ctx, nil, b.RLP)
	}
	if err := checkRefusal(b, err); err != nil {
		return err
	}
	r.refused++
	return nil
}

// repair puts the root of its transactions into a block that must be refused for
// another reason than a wrong one. Many tests have a bad transaction in a block that
// was made without it, so that the transaction itself is never looked at.
func repair(b bad) *bad {
	if b.block == nil || strings.Contains(b.ExpectException, "INVALID_TRANSACTIONS_ROOT") {
		return nil
	}
	header := types.CopyHeader(b.block.Header())
	header.TxHash = types.DeriveSha(b.block.Transactions(), trie.NewStackTrie(nil))
	block := types.NewBlockWithHeader(header).WithBody(*b.block.Body())
	encoded, err := rlp.EncodeToBytes(block)
	if err != nil {
		return nil
	}
	return &bad{encodedBlock{RLP: encoded, ExpectException: b.ExpectException}, block}
}
