package api_test

import (
	"math/big"
	"reflect"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// TestProofOfWork asks about blocks of a time before base fees, with uncles, a
// total difficulty, and receipts with state roots.
func TestProofOfWork(t *testing.T) {
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	config := params.ChainConfig{ChainID: big.NewInt(61), HomesteadBlock: new(big.Int), EIP150Block: new(big.Int), EIP155Block: new(big.Int), EIP158Block: new(big.Int), Ethash: new(params.EthashConfig)}
	g := &core.Genesis{
		Config: &config, GasLimit: 5_000_000, Difficulty: big.NewInt(0x20000),
		Alloc: types.GenesisAlloc{sender: {Balance: big.NewInt(params.Ether)}},
	}
	_, blocks, _ := core.GenerateChainWithGenesis(g, ethash.NewFaker(), 4, func(i int, b *core.BlockGen) {
		switch b.Number().Uint64() {
		case 2:
			for n := range uint64(2) {
				b.AddTx(types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{Nonce: n, To: &common.Address{1}, Value: big.NewInt(1), Gas: 21000, GasPrice: big.NewInt(5)}))
			}
		case 4:
			for _, extra := range []string{"one", "two"} {
				uncle := b.PrevBlock(2).Header() // beside the parent
				uncle.Extra = []byte(extra)
				b.AddUncle(uncle)
			}
			b.AddTx(types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{Nonce: 2, To: &common.Address{1}, Gas: 21000, GasPrice: big.NewInt(5)}))
		}
	})
	s := serve(t, g, ingesttest.SourceOf(blocks))
	head := blocks[3]

	var block readBlock
	s.ask(t, &block, "eth_getBlockByNumber", "0x4", false)
	total := new(big.Int).Set(g.Difficulty)
	for _, b := range blocks {
		total.Add(total, b.Difficulty())
	}
	if block.header.Hash() != head.Hash() || (*big.Int)(block.Total).Cmp(total) != 0 || block.Withdrawals != nil {
		t.Errorf("block 4: %+v; want the hash %x and the total difficulty %v", block, head.Hash(), total)
	}
	var again readBlock // without its body, from the cache
	s.ask(t, &again, "eth_getBlockByNumber", "0x4", false)
	if !reflect.DeepEqual(again, block) {
		t.Errorf("block 4 from the cache: %+v, at first %+v", again, block)
	}
	var count hexutil.Uint64
	s.ask(t, &count, "eth_getUncleCountByBlockHash", head.Hash())
	if count != 2 || len(block.Uncles) != 2 {
		t.Fatalf("%d uncles, in the block %v, want 2", count, block.Uncles)
	}
	for i, want := range head.Uncles() {
		var byHash, byNumber readBlock
		s.ask(t, &byHash, "eth_getUncleByBlockHashAndIndex", head.Hash(), hexutil.Uint64(i))
		s.ask(t, &byNumber, "eth_getUncleByBlockNumberAndIndex", "latest", hexutil.Uint64(i))
		if byHash.header.Hash() != want.Hash() || byNumber.Hash != want.Hash() || block.Uncles[i] != want.Hash() || byHash.Transactions != nil {
			t.Errorf("uncle %d: %+v, %+v, want %x", i, byHash, byNumber, want.Hash())
		}
	}
	if got := s.answer(t, "eth_getUncleByBlockNumberAndIndex", "latest", "0x2"); string(got.Result) != "null" {
		t.Errorf("uncle 2 of 2: %s", got.Result)
	}
	var receipts types.Receipts
	s.ask(t, &receipts, "eth_getBlockReceipts", "0x2")
	if len(receipts) != 2 || len(receipts[1].PostState) != 32 || receipts[1].GasUsed != 21000 || receipts[1].CumulativeGasUsed != 42000 || receipts[1].EffectiveGasPrice.Int64() != 5 {
		t.Errorf("receipts of block 2: %+v", receipts)
	}
	for method, want := range map[string]string{"eth_baseFee": "null", "eth_blobBaseFee": "null", "net_version": `"61"`} {
		if got := s.answer(t, method); string(got.Result) != want {
			t.Errorf("%s: %s %s, want %s", method, got.Result, got.Error, want)
		}
	}
}
