package ingest_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/execute"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/history/retention"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/clique"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

const (
	cliqueVanity = 32 // bytes of extra data before the signers
	cliqueSeal   = crypto.SignatureLength
)

// cliqueChain is a proof-of-authority chain of one signer, epochs of 10 blocks
// included, whose blocks pay somebody.
func cliqueChain(t *testing.T, key *ecdsa.PrivateKey, length int) (*core.Genesis, []*types.Block) {
	t.Helper()
	signer := crypto.PubkeyToAddress(key.PublicKey)
	config := *params.AllCliqueProtocolChanges
	config.Clique = &params.CliqueConfig{Period: 1, Epoch: 10}
	signers := append(make([]byte, cliqueVanity), signer[:]...)
	genesis := &core.Genesis{
		Config:     &config,
		ExtraData:  append(signers, make([]byte, cliqueSeal)...),
		Difficulty: big.NewInt(1),
		BaseFee:    big.NewInt(params.InitialBaseFee),
		GasLimit:   8_000_000,
		Alloc:      types.GenesisAlloc{signer: {Balance: big.NewInt(params.Ether)}},
	}
	engine := clique.New(config.Clique, rawdb.NewMemoryDatabase())
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, engine, length, func(i int, b *core.BlockGen) {
		b.SetDifficulty(big.NewInt(2)) // in turn
		tx, err := types.SignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{
			Nonce: b.TxNonce(signer), To: &common.Address{byte(i + 1)}, Value: big.NewInt(1), Gas: params.TxGas, GasPrice: b.BaseFee(),
		})
		if err != nil {
			t.Fatal(err)
		}
		b.AddTx(tx)
	})
	for i, block := range blocks {
		h := types.CopyHeader(block.Header())
		if i > 0 {
			h.ParentHash = blocks[i-1].Hash()
		}
		h.Extra = make([]byte, cliqueVanity+cliqueSeal)
		if h.Number.Uint64()%config.Clique.Epoch == 0 {
			h.Extra = append(append(make([]byte, cliqueVanity), signer[:]...), make([]byte, cliqueSeal)...)
		}
		blocks[i] = sealed(t, block, h, key)
	}
	return genesis, blocks
}

func sealed(t *testing.T, block *types.Block, h *types.Header, key *ecdsa.PrivateKey) *types.Block {
	t.Helper()
	seal, err := crypto.Sign(clique.SealHash(h).Bytes(), key)
	if err != nil {
		t.Fatal(err)
	}
	copy(h.Extra[len(h.Extra)-cliqueSeal:], seal)
	return block.WithSeal(h)
}

// A block of a time that has not come yet is not taken, and not said to be wrong: it
// may be the clock here that is.
func TestFutureBlock(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	genesis, blocks := cliqueChain(t, key, 1)
	g := newTargetOf(t, genesis)
	header := types.CopyHeader(blocks[0].Header())
	header.Time = uint64(time.Now().Add(time.Hour).Unix())
	err = g.importer.Import(t.Context(), ingesttest.SourceOf([]*types.Block{sealed(t, blocks[0], header, key)}))
	var refused *execute.CheckError
	if !errors.Is(err, execute.ErrFuture) || errors.As(err, &refused) {
		t.Errorf("a block of the next hour ended the import with %v, expected %v", err, execute.ErrFuture)
	}
}

// A proof-of-authority chain is imported, also in pieces by processes that do not
// know who signed before, and a block that somebody else signed is refused.
func TestImportClique(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	genesis, blocks := cliqueChain(t, key, 25)
	g := newTargetOf(t, genesis)
	g.mustImport(blocks[:13])
	g.reopen()
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	forged := sealed(t, blocks[13], types.CopyHeader(blocks[13].Header()), stranger)
	err = g.importer.Import(t.Context(), ingesttest.SourceOf([]*types.Block{forged}))
	var refused *execute.CheckError
	if !errors.As(err, &refused) || refused.Check != execute.CheckHeader {
		t.Errorf("a stranger's block ended the import with %v, expected that its header is refused", err)
	}
	g.mustImport(blocks)
	if head, _ := g.archive.Settled(); head.Hash != blocks[24].Hash() {
		t.Errorf("the head is %s, expected block 25", head)
	}
}

// A block that was checked when it came is executed again without another look for those who may sign it, which
// would read headers back to the genesis and put them into its witness.
func TestCliqueBlockIsExecutedAgain(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	genesis, blocks := cliqueChain(t, key, 25)
	g := newTargetOf(t, genesis)
	g.mustImport(blocks)
	read := 0
	parent := execute.Parent{Header: blocks[21].Header(), State: g.archive.StateAt(22), Ancestors: countedAncestors{archive.Ancestors{History: &g.archive.History}, &read}}
	g.reopen()
	witness, err := g.executor.Witness(t.Context(), parent, blocks[22])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(witness.Headers); n != 1 {
		t.Errorf("the witness has %d headers, want that of the parent", n)
	}
	g.reopen()
	if touched, err := g.executor.Touched(t.Context(), parent, blocks[22]); err != nil || len(touched) < 2 {
		t.Errorf("%d accounts were touched, %v, want the sender and the receiver", len(touched), err)
	}
	if read > 0 {
		t.Errorf("%d headers were read", read)
	}
}

// countedAncestors counts the headers that are read.
type countedAncestors struct {
	archive.Ancestors
	read *int
}

func (a countedAncestors) Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	*a.read++
	return a.Ancestors.Header(ctx, hash, number)
}

// A window keeps the checkpoint from which the signers follow, so that a new process can go on.
func TestCliqueWithAWindow(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	genesis, blocks := cliqueChain(t, key, 25)
	g := newTargetOf(t, genesis)
	g.mustImport(blocks[:23])
	kept := retention.Window{Proofs: 5, State: 5, History: 5}
	if err := window.New(g.archive, g.store, kept, window.Options{Ancestors: 1}).Move(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first := g.archive.Extent().Blocks; first != 10 {
		t.Errorf("the first block is %d, want the checkpoint 10", first)
	}
	g.reopen()
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	err = g.importer.Import(t.Context(), ingesttest.SourceOf([]*types.Block{sealed(t, blocks[23], types.CopyHeader(blocks[23].Header()), stranger)}))
	var refused *execute.CheckError
	if !errors.As(err, &refused) || refused.Check != execute.CheckHeader {
		t.Errorf("a stranger's block ended the import with %v, expected that its header is refused", err)
	}
	g.mustImport(blocks[23:])
}
