package ingest_test

import (
	"bytes"
	"errors"
	"maps"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// withoutLists are blocks as a file or JSON-RPC brings them.
func withoutLists(blocks []*types.Block) []*types.Block {
	bare := make([]*types.Block, len(blocks))
	for i, block := range blocks {
		bare[i] = block.WithAccessListUnsafe(nil)
	}
	return bare
}

// TestListedImport imports a chain without its access lists, and with them: in order, in
// parallel, and as the stages of the import leave processors free. Every stored row is the
// same, receipts, state and lists among them.
func TestListedImport(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	without := newTargetOf(t, genesis)
	without.mustImport(withoutLists(blocks))
	if got, _ := without.executor.ListedBlocks(); got != 0 {
		t.Errorf("%d blocks without lists ran from one", got)
	}
	want := without.rows()
	const amsterdam = ingesttest.CrossingBlocks - ingesttest.CrossingFork + 1
	for _, processors := range []int{0, 1, 4} {
		with := newTargetOf(t, genesis)
		with.importer.Processors = processors
		with.mustImport(blocks)
		if got := with.rows(); !maps.Equal(got, want) {
			for key := range want {
				if got[key] != want[key] {
					t.Errorf("row %q: %x with lists, %x without", key, got[key], want[key])
				}
			}
			t.Fatalf("%d processors: %d rows with lists, %d without", processors, len(got), len(want))
		}
		all, parallel := with.executor.ListedBlocks()
		if all != amsterdam || processors > 0 && parallel != uint64(min(processors-1, 1)*amsterdam) {
			t.Errorf("%d processors: %d blocks ran from their lists, %d in parallel, want all %d of Amsterdam", processors, all, parallel, amsterdam)
		}
	}
}

// TestStoredAccessLists reads the lists of a chain that arrived without them.
func TestStoredAccessLists(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	g := newTargetOf(t, genesis)
	g.mustImport(withoutLists(blocks))
	for _, block := range blocks {
		got, err := g.archive.AccessList(t.Context(), block.NumberU64())
		if block.NumberU64() < ingesttest.CrossingFork {
			if !errors.Is(err, archive.ErrNotFound) {
				t.Errorf("block %d before Amsterdam: %v, want ErrNotFound", block.NumberU64(), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := rlp.EncodeToBytes(block.AccessList())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("block %d: access list %x, want %x", block.NumberU64(), got, want)
		}
	}
}

// TestGenesisOfAmsterdam imports a chain that begins with Amsterdam.
func TestGenesisOfAmsterdam(t *testing.T) {
	crossing, _ := ingesttest.Crossing(t)
	config := *crossing.Config
	config.AmsterdamTime = new(uint64)
	genesis := &core.Genesis{Config: &config, GasLimit: 30_000_000, Alloc: crossing.Alloc}
	g := newTargetOf(t, genesis)
	list, err := g.archive.AccessList(t.Context(), 0)
	if err != nil || !bytes.Equal(list, rlp.EmptyList) {
		t.Errorf("the genesis has the access list %x (%v), want the empty one", list, err)
	}
}

// TestEmptyAccountInList imports a block that deletes an empty account of the genesis
// (EIP-161), which its access list does not show.
func TestEmptyAccountInList(t *testing.T) {
	crossing, _ := ingesttest.Crossing(t)
	config := *crossing.Config
	config.AmsterdamTime = new(uint64)
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		t.Fatal(err)
	}
	empty, sender := common.Address{19: 0xe0, 1: 1}, crypto.PubkeyToAddress(key.PublicKey)
	genesis := &core.Genesis{Config: &config, GasLimit: 30_000_000, BaseFee: big.NewInt(params.InitialBaseFee), Difficulty: new(big.Int), Alloc: maps.Clone(crossing.Alloc)}
	genesis.Alloc[empty] = types.Account{Balance: new(big.Int)}
	genesis.Alloc[sender] = types.Account{Balance: big.NewInt(params.Ether)}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 1, func(_ int, b *core.BlockGen) {
		b.SetParentBeaconRoot(common.Hash{1})
		b.AddTx(types.MustSignNewTx(key, b.Signer(), &types.DynamicFeeTx{
			ChainID: config.ChainID, GasTipCap: common.Big1, GasFeeCap: big.NewInt(2 * params.InitialBaseFee), Gas: 100_000, To: &empty,
		}))
	})
	for _, processors := range []int{1, 4} {
		g := newTargetOf(t, genesis)
		before, err := g.archive.StateAt(0).Account(t.Context(), evm.HashAddress(empty))
		if err != nil || before == nil {
			t.Fatalf("the genesis has the empty account %v (%v)", before, err)
		}
		g.importer.Processors = processors
		g.mustImport(blocks)
		after, err := g.archive.StateAt(1).Account(t.Context(), evm.HashAddress(empty))
		if err != nil || after != nil {
			t.Errorf("%d processors: the account is %v after the block (%v), want none", processors, after, err)
		}
		if listed, _ := g.executor.ListedBlocks(); listed != 0 {
			t.Errorf("%d processors: the block ran from its list", processors)
		}
	}
}
