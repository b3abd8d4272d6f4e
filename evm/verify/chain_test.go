package verify_test

import (
	"context"
	"encoding/binary"
	"math/big"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
	"ashlar/history/audit/audittest"
	"ashlar/history/retention"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// testChain is a chain whose archive is checked.
type testChain struct {
	name  string
	build func() (*core.Genesis, []*types.Block, error)
}

func testChains() []testChain {
	demo := func() (*core.Genesis, []*types.Block, error) { return demoChain(demoBlocks) }
	return []testChain{{"demo", demo}, {"old rules", oldChain}, {"Amsterdam", amsterdamChain}}
}

// demoBlocks is enough for contracts to call each other.
const demoBlocks = 9

func demoChain(blocks int) (genesis *core.Genesis, chain []*types.Block, err error) {
	network, err := demo.New(demo.Default())
	if err != nil {
		return nil, nil, err
	}
	if genesis, err = network.Genesis(); err != nil {
		return nil, nil, err
	}
	builder, err := reference.New(network)
	if err != nil {
		return nil, nil, err
	}
	err = builder.Build(context.Background(), blocks, func(b reference.Block) error {
		chain = append(chain, b.Block)
		return nil
	})
	return genesis, chain, err
}

// amsterdamChain begins before Amsterdam and continues after it.
func amsterdamChain() (*core.Genesis, []*types.Block, error) {
	genesis, blocks, err := ingesttest.BuildCrossing()
	return genesis, blocks[:demoBlocks], err
}

// oldChain goes from Frontier to London. It has what later rules do not: uncles, receipts with
// state roots, slots that change and change back within a block, and SELFDESTRUCT, which wipes
// storage. The hashes of two of its slots are so similar that their leaves are embedded in their
// parent.
func oldChain() (*core.Genesis, []*types.Block, error) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		return nil, nil, err
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	// Called with two words it stores the second in the slot given by the first and logs it as a
	// topic; called without input it destroys itself.
	code := common.FromHex("0x3660065733ff5b60203560003555" + "60203560006000a1" + "00")
	initcode := program.New().Sstore(1, 1).ReturnData(code).Bytes()
	factory, first := common.HexToAddress("0xfac7"), common.HexToAddress("0xf157")
	phoenix := crypto.CreateAddress2(factory, common.Hash{}, crypto.Keccak256(initcode))
	genesis := &core.Genesis{
		Config:   oldRules(),
		GasLimit: 30_000_000, Difficulty: big.NewInt(1 << 17),
		Alloc: types.GenesisAlloc{
			sender:  {Balance: big.NewInt(params.Ether)},
			first:   {Code: code, Balance: new(big.Int), Storage: map[common.Hash]common.Hash{{31: 1}: {31: 5}}},
			factory: {Code: program.New().Create2(initcode, 0).Bytes(), Balance: new(big.Int)},
		},
	}
	a, b := alikeSlots()
	large := common.Hash{0: 0xff, 31: 1}
	set := func(at common.Address, slot, value common.Hash) call {
		return call{at, append(slot.Bytes(), value.Bytes()...)}
	}
	n := func(n byte) common.Hash { return common.Hash{31: n} }
	calls := [][]call{ // by block
		{set(first, n(1), n(6)), set(first, n(1), n(5))},
		{set(first, a, n(1)), set(first, b, n(1)), set(first, n(2), large)},
		{set(first, a, large)},
		{set(first, a, n(2)), set(first, b, n(0))},
		{{to: factory}, set(first, b, n(3))},
		{set(phoenix, n(7), large), set(phoenix, n(8), n(8)), set(phoenix, n(9), n(9))},
		{{to: phoenix}},
		{{to: factory}, set(first, a, n(0))},
		{{to: phoenix}, {to: factory}, set(first, b, n(0))},
		{set(phoenix, n(8), n(1)), {to: first}},
		{set(phoenix, n(8), n(2))},
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, ethash.NewFaker(), len(calls), func(i int, g *core.BlockGen) {
		if i == 3 {
			g.AddUncle(&types.Header{ParentHash: g.PrevBlock(i - 2).Hash(), Number: big.NewInt(int64(i)), Time: g.PrevBlock(i-2).Time() + 12})
		}
		for _, c := range calls[i] {
			price := big.NewInt(params.GWei)
			g.AddTx(types.MustSignNewTx(key, g.Signer(), &types.LegacyTx{Nonce: g.TxNonce(sender), GasPrice: price, Gas: 500_000, To: &c.to, Data: c.data}))
		}
	})
	return genesis, blocks, nil
}

// call is a transaction that calls a contract.
type call struct {
	to   common.Address
	data []byte
}

func oldRules() *params.ChainConfig {
	byzantium, london := big.NewInt(4), big.NewInt(6)
	return &params.ChainConfig{
		ChainID: big.NewInt(1), HomesteadBlock: new(big.Int), EIP150Block: big.NewInt(2), EIP155Block: big.NewInt(3), EIP158Block: big.NewInt(3),
		ByzantiumBlock: byzantium, ConstantinopleBlock: byzantium, PetersburgBlock: byzantium, IstanbulBlock: byzantium, MuirGlacierBlock: byzantium,
		BerlinBlock: london, LondonBlock: london, Ethash: new(params.EthashConfig),
	}
}

// alikeSlots returns two slots whose hashes have the same first 32 bits.
func alikeSlots() (a, b common.Hash) {
	seen := make(map[uint32]common.Hash)
	for i := uint64(1); ; i++ {
		binary.BigEndian.PutUint64(b[24:], i)
		head := binary.BigEndian.Uint32(crypto.Keccak256(b[:]))
		if other, ok := seen[head]; ok {
			return other, b
		}
		seen[head] = b
	}
}

// imported imports a chain as a user would, in memory.
func imported(t testing.TB, chain testChain) kv.Store {
	t.Helper()
	return importedAs(t, chain, "")
}

// importedAs is imported into an archive of a format, or of the newest one with a trace index if it is empty.
func importedAs(t testing.TB, chain testChain, format string) kv.Store {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	genesis, blocks, err := chain.build()
	must(err)
	store, err := pebble.Open(pebble.Options{Path: "network", FS: vfs.NewMem()})
	must(err)
	t.Cleanup(func() { must(store.Close()) })
	a, err := archive.Create(t.Context(), store, genesis, archive.TraceIndex)
	must(err)
	if format != "" {
		batch := store.NewBatch()
		rows.SetFormat(batch, format)
		must(store.Write(t.Context(), batch))
		a, err = archive.Open(t.Context(), store)
		must(err)
	}
	executor, err := execute.New(genesis.Config, execute.RecordTraces(a.HasTraces()))
	must(err)
	importer, err := ingest.New(t.Context(), a, executor, genesis)
	must(err)
	must(importer.Import(t.Context(), ingesttest.SourceOf(blocks)))
	return store
}

// keeping imports a chain and removes what is older than a window.
func keeping(t *testing.T, chain testChain, w retention.Window) *audittest.Memory {
	t.Helper()
	store := imported(t, chain)
	a, err := archive.Open(t.Context(), store)
	if err == nil {
		err = window.New(a, store, w, window.Options{}).Move(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return audittest.Read(t, store, archive.Tables())
}
