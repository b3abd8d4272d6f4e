package ingest_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/raced"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// target is an archive in memory that is imported into.
type target struct {
	t        *testing.T
	genesis  *core.Genesis
	store    kv.Store
	archive  *archive.Archive
	executor *execute.Executor
	importer *ingest.Importer
}

func newTarget(t *testing.T) *target {
	t.Helper()
	return newTargetOf(t, ingesttest.Genesis(t))
}

func newTargetOf(t *testing.T, genesis *core.Genesis) *target {
	t.Helper()
	target := &target{t: t, genesis: genesis, store: ingesttest.Store(t)}
	target.reopen()
	return target
}

// reopen forgets what is in memory, as a new process would.
func (g *target) reopen() {
	g.t.Helper()
	var err error
	if g.archive, err = archive.Create(g.t.Context(), g.store, g.genesis); err != nil {
		g.t.Fatal(err)
	}
	if g.executor, err = execute.New(g.genesis.Config); err != nil {
		g.t.Fatal(err)
	}
	if g.importer, err = ingest.New(g.t.Context(), g.archive, g.executor, g.genesis); err != nil {
		g.t.Fatal(err)
	}
}

func (g *target) mustImport(blocks []*types.Block) {
	g.t.Helper()
	if err := g.importer.Import(g.t.Context(), ingesttest.SourceOf(blocks)); err != nil {
		g.t.Fatal(err)
	}
}

// rows are all rows of the archive, by table and key.
func (g *target) rows() map[string]string {
	g.t.Helper()
	rows := make(map[string]string)
	for _, table := range archive.Tables() {
		for row, err := range g.store.Walk(g.t.Context(), table, 0) {
			if err != nil {
				g.t.Fatal(err)
			}
			rows[table.Name+"/"+string(row.Partition)+"/"+new(big.Int).SetUint64(row.Sort).String()] = string(row.Value)
		}
	}
	return rows
}

func TestImportSettlesEveryBlock(t *testing.T) {
	blocks := ingesttest.Chain(t)
	g := newTarget(t)
	g.mustImport(blocks)
	head, _ := g.archive.Settled()
	if want := blocks[len(blocks)-1]; head.Hash != want.Hash() {
		t.Fatalf("the head is %s, expected %d %x", head, want.NumberU64(), want.Hash())
	}
	for _, block := range blocks {
		header, err := g.archive.Header(t.Context(), block.NumberU64())
		if err != nil {
			t.Fatal(err)
		}
		body, err := g.archive.Body(t.Context(), block.NumberU64(), nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := body.Block(header.Header)
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != block.Hash() || header.Size != block.Size() {
			t.Errorf("block %d is stored as %x with size %d, expected %x with %d", block.NumberU64(), again.Hash(), header.Size, block.Hash(), block.Size())
		}
	}
}

// However an import is cut into pieces, and whatever is imported again, the
// archive ends up with the same rows.
func TestImportInPiecesGivesTheSameRows(t *testing.T) {
	blocks := ingesttest.Chain(t)
	whole := newTarget(t)
	whole.mustImport(blocks)
	want := whole.rows()

	pieces := newTarget(t)
	pieces.mustImport(blocks[:7])
	pieces.mustImport(blocks[7:23])
	pieces.reopen()
	pieces.mustImport(blocks) // from the beginning again
	if got := pieces.importer.Progress(); got.Skipped != 23 || got.Blocks != ingesttest.ChainBlocks-23 {
		t.Errorf("skipped %d and settled %d blocks, expected 23 and %d", got.Skipped, got.Blocks, ingesttest.ChainBlocks-23)
	}
	pieces.reopen()
	pieces.mustImport(blocks)
	got := pieces.rows()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("row %q is %x, expected %x", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, expected %d", len(got), len(want))
	}
}

// Where tries keep no nodes, each block reads what the unsettled ones before it wrote. The rows are
// the same.
func TestImportWithoutKeptTries(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	kept, without := newTargetOf(t, genesis), newTargetOf(t, genesis)
	without.importer.KeepNoTries()
	kept.mustImport(blocks)
	without.mustImport(blocks)
	if want := kept.rows(); !maps.Equal(without.rows(), want) {
		t.Errorf("the rows differ from the %d of an import that keeps its tries", len(want))
	}
}

// A block that breaks a rule is refused with the name of the check, and the
// blocks before it stay.
func TestImportRefusesBadBlocks(t *testing.T) {
	raced.Skip(t)
	blocks := ingesttest.Chain(t)
	const bad = 21 // index; the block's number is one more
	header := func(change func(h *types.Header)) func(*types.Block) *types.Block {
		return func(block *types.Block) *types.Block {
			h := types.CopyHeader(block.Header())
			change(h)
			return types.NewBlockWithHeader(h).WithBody(*block.Body())
		}
	}
	for _, test := range []struct {
		name, check string
		change      func(*types.Block) *types.Block
	}{
		{"state root", execute.CheckStateRoot, header(func(h *types.Header) { h.Root[7]++ })},
		{"receipts root", execute.CheckReceiptsRoot, header(func(h *types.Header) { h.ReceiptHash[0]++ })},
		{"bloom", execute.CheckBloom, header(func(h *types.Header) { h.Bloom[100] ^= 1 })},
		{"gas used", execute.CheckGasUsed, header(func(h *types.Header) { h.GasUsed++ })},
		{"requests hash", execute.CheckRequestsHash, header(func(h *types.Header) { h.RequestsHash = &common.Hash{1} })},
		{"no requests hash", execute.CheckRequestsHash, header(func(h *types.Header) { h.RequestsHash = nil })},
		{"transactions root", execute.CheckTransactionsRoot, header(func(h *types.Header) { h.TxHash[3]++ })},
		{"withdrawals root", execute.CheckWithdrawalsRoot, header(func(h *types.Header) { h.WithdrawalsHash = &common.Hash{2} })},
		{"uncles hash", execute.CheckUnclesHash, header(func(h *types.Header) { h.UncleHash[3]++ })},
		{"blob gas", execute.CheckBlobs, header(func(h *types.Header) { *h.BlobGasUsed += 1 << 17 })},
		{"base fee", execute.CheckHeader, header(func(h *types.Header) { h.BaseFee.Add(h.BaseFee, common.Big1) })},
		{"timestamp", execute.CheckHeader, header(func(h *types.Header) { h.Time -= 1000 })},
		{"gas limit", execute.CheckHeader, header(func(h *types.Header) { h.GasLimit *= 2 })},
		{"a transaction twice", execute.CheckExecution, twice},
		{"a transaction of another chain", execute.CheckSignature, otherChain},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newTarget(t)
			chain := append([]*types.Block{}, blocks...)
			chain[bad] = test.change(chain[bad])
			err := g.importer.Import(t.Context(), ingesttest.SourceOf(chain[:bad+1]))
			var refused *execute.CheckError
			if !errors.As(err, &refused) {
				t.Fatalf("the import ended with %v, expected a refusal", err)
			}
			if refused.Check != test.check || refused.Number != chain[bad].NumberU64() || refused.Hash != chain[bad].Hash() {
				t.Errorf("refused: %v; expected the check %q of block %d (%x)", refused, test.check, chain[bad].NumberU64(), chain[bad].Hash())
			}
			if head, _ := g.archive.Settled(); head.Hash != blocks[bad-1].Hash() {
				t.Errorf("the head is %s, expected the block before", head)
			}
			g.reopen()
			g.mustImport(blocks) // the right ones go in afterwards
		})
	}
}

// What a refused block has changed is forgotten, also where it was found to be
// bad after it had been executed.
func TestImportGoesOnAfterARefusal(t *testing.T) {
	blocks := ingesttest.Chain(t)
	g := newTarget(t)
	for bad := 5; bad < ingesttest.ChainBlocks; bad += 10 {
		wrong := types.CopyHeader(blocks[bad].Header())
		wrong.Root[7]++
		chain := append([]*types.Block{}, blocks[:bad]...)
		chain = append(chain, types.NewBlockWithHeader(wrong).WithBody(*blocks[bad].Body()))
		var refused *execute.CheckError
		if err := g.importer.Import(t.Context(), ingesttest.SourceOf(chain)); !errors.As(err, &refused) {
			t.Fatalf("the import ended with %v, expected a refusal", err)
		}
	}
	g.mustImport(blocks)
}

// withTransactions is a block with other transactions, whose root fits.
func withTransactions(block *types.Block, transactions types.Transactions) *types.Block {
	body := block.Body()
	body.Transactions = transactions
	h := types.CopyHeader(block.Header())
	h.TxHash = types.DeriveSha(transactions, trie.NewStackTrie(nil))
	return types.NewBlockWithHeader(h).WithBody(*body)
}

func twice(block *types.Block) *types.Block {
	transactions := block.Transactions()
	return withTransactions(block, append(transactions[:len(transactions):len(transactions)], transactions[0]))
}

func otherChain(block *types.Block) *types.Block {
	foreign := types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(99), Gas: 21000, R: big.NewInt(1), S: big.NewInt(1), V: new(big.Int)})
	return withTransactions(block, append(block.Transactions()[:0:0], foreign))
}

func TestImportRefusesOtherChainsAndGaps(t *testing.T) {
	blocks := ingesttest.Chain(t)
	other := types.CopyHeader(blocks[3].Header())
	other.Extra = []byte("another")
	otherBlock := types.NewBlockWithHeader(other).WithBody(*blocks[3].Body())
	orphan := types.CopyHeader(blocks[10].Header())
	orphan.ParentHash = common.Hash{9}
	for _, test := range []struct {
		name  string
		chain []*types.Block
		want  error
		says  string
	}{
		{"another block where one is settled", []*types.Block{otherBlock}, ingest.ErrOtherChain, "block 4 is"},
		{"another parent", []*types.Block{types.NewBlockWithHeader(orphan).WithBody(*blocks[10].Body())}, ingest.ErrOtherChain, "block 11 has the parent"},
		{"a gap", blocks[12:], ingest.ErrGap, "block 13 comes after block 10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newTarget(t)
			g.mustImport(blocks[:10])
			err := g.importer.Import(t.Context(), ingesttest.SourceOf(test.chain))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the import ended with %v, expected %v that says %q", err, test.want, test.says)
			}
			if head, _ := g.archive.Settled(); head.Number != 10 {
				t.Errorf("the head is %s, expected block 10", head)
			}
		})
	}
}

// broken fails after some blocks.
type broken struct {
	*ingesttest.Source
	err error
}

func (b *broken) Next() (*types.Block, error) {
	block, err := b.Source.Next()
	if err == io.EOF {
		err = b.err
	}
	return block, err
}

func TestImportKeepsWhatCameBeforeABrokenSource(t *testing.T) {
	g := newTarget(t)
	torn := errors.New("torn")
	err := g.importer.Import(t.Context(), &broken{ingesttest.SourceOf(ingesttest.Chain(t)[:15]), torn})
	if !errors.Is(err, torn) {
		t.Errorf("the import ended with %v, expected the source's error", err)
	}
	if head, _ := g.archive.Settled(); head.Number != 15 {
		t.Errorf("the head is %s, expected block 15", head)
	}
}

// stopping ends the context after some blocks.
type stopping struct {
	*ingesttest.Source
	left int
	stop context.CancelFunc
}

func (s *stopping) Next() (*types.Block, error) {
	if s.left--; s.left == 0 {
		s.stop()
	}
	return s.Source.Next()
}

func TestImportStopsWhenItsContextEnds(t *testing.T) {
	g := newTarget(t)
	ctx, stop := context.WithCancel(t.Context())
	err := g.importer.Import(ctx, &stopping{ingesttest.SourceOf(ingesttest.Chain(t)), 20, stop})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the import ended with %v, expected that it was cancelled", err)
	}
	if head, _ := g.archive.Settled(); head.Number != 19 {
		t.Errorf("the head is %s, expected block 19: what was read is finished", head)
	}
	g.mustImport(ingesttest.Chain(t))
}
