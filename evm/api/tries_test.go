package api_test

import (
	"fmt"
	"math/big"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestStatesWithoutTries: where older states have no trie nodes any more, blocks from before Cancun are traced and
// called as ever. What needs state roots or trie nodes says so.
func TestStatesWithoutTries(t *testing.T) {
	const last, tries = 12, 8
	genesis := madeGenesis()
	genesis.Config.CancunTime, genesis.Config.PragueTime = nil, nil
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), last, func(i int, b *core.BlockGen) {
		tx := &types.LegacyTx{Nonce: uint64(i), GasPrice: b.BaseFee(), Gas: 100_000, To: &logger, Value: big.NewInt(1)}
		b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, tx))
	})
	_, a, executor := newChain(t, genesis)
	importInto(t, a, executor, genesis, ingesttest.SourceOf(blocks))
	if err := a.SetFirst(t.Context(), archive.Extent{Tries: tries}); err != nil {
		t.Fatal(err)
	}
	s := serveChain(query.NewChain(a, nil, executor))
	for number := uint64(1); number <= last; number++ {
		at, sender := hexutil.EncodeUint64(number), crypto.PubkeyToAddress(key.PublicKey)
		for method, args := range map[string][]any{
			"debug_traceBlockByNumber":      {at},
			"trace_replayBlockTransactions": {at, []string{"trace", "stateDiff"}},
			"trace_block":                   {at},
			"eth_call":                      {map[string]any{"to": logger}, at},
			"eth_getAccountInfo":            {sender, at},
			"eth_getBlockReceipts":          {at},
		} {
			if answer := s.answer(t, method, args...); answer.Error != nil {
				t.Errorf("%s of block %d: %s", method, number, answer.Error)
			}
		}
		for method, needs := range map[string]struct {
			first uint64 // block of which it has an answer
			args  []any
		}{
			"eth_getProof":                      {tries, []any{sender, []string{}, at}},
			"eth_simulateV1":                    {tries, []any{map[string]any{"blockStateCalls": []any{map[string]any{}}}, at}},
			"debug_intermediateRoots":           {tries + 1, []any{blocks[number-1].Hash()}},
			"debug_executionWitness":            {tries + 1, []any{at}},
			"debug_getModifiedAccountsByNumber": {tries + 1, []any{number}}, // its block is executed with its state root
			"debug_storageRangeAt":              {tries + 1, []any{blocks[number-1].Hash(), 0, logger, common.Hash{}, 5}},
		} {
			if number >= needs.first {
				if answer := s.answer(t, method, needs.args...); answer.Error != nil {
					t.Errorf("%s of block %d: %s", method, number, answer.Error)
				}
				continue
			}
			asked := number - (needs.first - tries)
			want := fmt.Sprintf("pruned history unavailable: missing trie nodes of block %d, of which proofs and state roots are made (the first block with trie nodes is %d)", asked, tries)
			if f := s.failure(t, method, needs.args...); f.Code != 4444 || f.Message != want {
				t.Errorf("%s of block %d: %+v, want %s", method, number, f, want)
			}
		}
	}
}
