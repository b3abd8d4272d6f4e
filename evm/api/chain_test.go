package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/evm/source/file"
	"ashlar/evm/trace/script"
	"ashlar/internal/vectors"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/worker"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// service answers requests about a chain that was imported into memory.
type service struct {
	*jsonrpc.Server
	methods jsonrpc.Handlers
	blocks  []*types.Block // by number, where the test made them
}

// serve imports a chain into an archive in memory and serves it.
func serve(t testing.TB, g *core.Genesis, source ingest.Source) *service {
	t.Helper()
	_, settled, executor := newChain(t, g)
	importInto(t, settled, executor, g, source)
	return serveChain(query.NewChain(settled, nil, executor))
}

// importInto imports a chain into an archive.
func importInto(t testing.TB, a *archive.Archive, e *execute.Executor, g *core.Genesis, source ingest.Source) {
	t.Helper()
	importer, err := ingest.New(t.Context(), a, e, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := importer.Import(t.Context(), source); err != nil {
		t.Fatal(err)
	}
}

// newChain makes an archive in memory, with a trace index.
func newChain(t testing.TB, g *core.Genesis) (kv.Store, *archive.Archive, *execute.Executor) {
	t.Helper()
	return newChainWith(t, g, true)
}

// newChainWith is newChain with or without a trace index.
func newChainWith(t testing.TB, g *core.Genesis, traces bool) (kv.Store, *archive.Archive, *execute.Executor) {
	t.Helper()
	var features []archive.Feature
	if traces {
		features = append(features, archive.TraceIndex)
	}
	ctx := t.Context()
	store, err := pebble.Open(pebble.Options{Path: "data", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	settled, err := archive.Create(ctx, store, g, features...)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(g.Config, execute.RecordTraces(traces))
	if err != nil {
		t.Fatal(err)
	}
	return store, settled, executor
}

// methodsOf describes the methods of an API. It panics where a description lacks
// something, which every test notices.
func methodsOf(a *api.API) *jsonrpc.Methods {
	methods, err := a.Methods()
	if err != nil {
		panic(err)
	}
	return methods
}

// workers run tracers in JavaScript. They are the test binary, see TestMain.
var workers *worker.Pool

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := errors.Join(worker.Confine(), script.Serve(os.Stdin, os.Stdout)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	workers = worker.NewPool(2, "/proc/self/exe", "worker")
	code := m.Run()
	workers.Close()
	os.Exit(code)
}

func serveChain(chain *query.Chain) *service {
	return serveConfigured(chain, api.Config{ClientVersion: "Ashlar/test", Workers: workers})
}

func serveConfigured(chain *query.Chain, config api.Config) *service {
	return serveAPI(api.New(chain, config))
}

func serveAPI(a *api.API) *service {
	methods := methodsOf(a).Handlers()
	return &service{
		Server:  jsonrpc.NewServer(methods, jsonrpc.Config{Log: slog.New(slog.DiscardHandler)}),
		methods: methods,
	}
}

// serveVectors serves the chain that the recorded conversations are about.
func serveVectors(t testing.TB) *service {
	folder := vectors.Path(t, "execution-apis")
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	export, err := file.Open(filepath.Join(folder, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	defer export.Close()
	return serve(t, g, export)
}

// ask asks for a method's result and decodes it; it fails the test on an error.
func (s *service) ask(t testing.TB, into any, method string, args ...any) {
	t.Helper()
	answer := s.answer(t, method, args...)
	if answer.Error != nil {
		t.Fatalf("%s%v: %s", method, args, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		t.Fatalf("%s%v: %v in %s", method, args, err, answer.Result)
	}
}

type answer struct{ Result, Error json.RawMessage }

func (s *service) answer(t testing.TB, method string, args ...any) (a answer) {
	t.Helper()
	if args == nil {
		args = []any{}
	}
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": args})
	if err != nil {
		t.Fatal(err)
	}
	raw := s.Answer(t.Context(), request, nil)
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%s: %v in %s", request, err, raw)
	}
	return a
}

// The chain that the tests make for themselves.
const (
	madeBlocks      = 4
	madeBusyBlock   = 3 // holds madeBusy transactions; block 2 has one of each type
	madeBusy        = 61
	madeTransaction = 21000 + 60000
)

var (
	// logger writes a log with the topics 1, 2 and 3 and its input's first word as data.
	logger     = common.HexToAddress("0x1099e40000000000000000000000000000000001")
	loggerCode = common.FromHex("60003560005260036002600160206000a300")
	// reverter reverts whatever it is called with.
	reverter     = common.HexToAddress("0x1099e40000000000000000000000000000000002")
	reverterCode = common.FromHex("60006000fd")
)

func testKey() string { return "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291" }

// madeGenesis is under the rules of Prague from the first block.
func madeGenesis() *core.Genesis {
	config := *params.MergedTestChainConfig
	config.OsakaTime, config.BPO1Time, config.BPO2Time, config.AmsterdamTime, config.UBTTime = nil, nil, nil, nil, nil
	key, _ := crypto.HexToECDSA(testKey())
	return &core.Genesis{
		Config:   &config,
		GasLimit: 30_000_000, Difficulty: new(big.Int),
		BaseFee: big.NewInt(params.InitialBaseFee),
		Alloc: types.GenesisAlloc{
			crypto.PubkeyToAddress(key.PublicKey): {Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether))},
			logger:                                {Code: loggerCode, Balance: new(big.Int), Storage: map[common.Hash]common.Hash{{31: 5}: {31: 0x2a}}},
			reverter:                              {Code: reverterCode, Balance: new(big.Int)},
			params.BeaconRootsAddress:             {Nonce: 1, Code: params.BeaconRootsCode, Balance: new(big.Int)},
			params.HistoryStorageAddress:          {Nonce: 1, Code: params.HistoryStorageCode, Balance: new(big.Int)},
			params.WithdrawalQueueAddress:         {Nonce: 1, Code: params.WithdrawalQueueCode, Balance: new(big.Int)},
			params.ConsolidationQueueAddress:      {Nonce: 1, Code: params.ConsolidationQueueCode, Balance: new(big.Int)},
		},
	}
}

// serveMade makes and serves a chain with every type of transaction.
func serveMade(t testing.TB) *service {
	t.Helper()
	g := madeGenesis()
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	signer := types.LatestSigner(g.Config)
	_, blocks, _ := core.GenerateChainWithGenesis(g, beacon.New(ethash.NewFaker()), madeBlocks, func(i int, b *core.BlockGen) {
		b.SetCoinbase(common.Address{0xc0})
		b.SetParentBeaconRoot(common.Hash{byte(i + 1)})
		send := func(data types.TxData) { b.AddTx(types.MustSignNewTx(key, signer, data)) }
		nonce := func() uint64 { return b.TxNonce(crypto.PubkeyToAddress(key.PublicKey)) }
		switch b.Number().Uint64() {
		case 2:
			auth, err := types.SignSetCode(key, types.SetCodeAuthorization{
				ChainID: *uint256.MustFromBig(g.Config.ChainID), Address: logger, Nonce: nonce() + 6, // what the sender's own nonce is by then
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range everyType(g.Config, b.BaseFee(), nonce(), auth) {
				send(data)
			}
			b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{
				Nonce: nonce(), GasPrice: b.BaseFee(), Gas: 100_000, To: &reverter,
			}))
			b.AddWithdrawal(&types.Withdrawal{Validator: 7, Address: common.Address{0xaa}, Amount: 9})
		case madeBusyBlock:
			for range madeBusy {
				send(&types.DynamicFeeTx{
					ChainID: g.Config.ChainID, Nonce: nonce(), GasTipCap: big.NewInt(3), GasFeeCap: new(big.Int).Add(b.BaseFee(), big.NewInt(5)),
					Gas: madeTransaction, To: &logger, Data: common.Hash{1, 31: byte(nonce())}.Bytes(),
				})
			}
		}
	})
	s := serve(t, g, ingesttest.SourceOf(blocks))
	s.blocks = append([]*types.Block{g.ToBlock()}, blocks...)
	return s
}

// everyType is a transaction of each type, and a creation.
func everyType(config *params.ChainConfig, baseFee *big.Int, nonce uint64, auth types.SetCodeAuthorization) []types.TxData {
	access := types.AccessList{{Address: logger, StorageKeys: []common.Hash{{31: 5}, {1}}}, {Address: reverter}}
	price := new(big.Int).Add(baseFee, big.NewInt(7))
	small, large := uint256.NewInt(2), uint256.MustFromBig(price)
	chain := uint256.MustFromBig(config.ChainID)
	input := common.Hash{2}.Bytes()
	return []types.TxData{
		&types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: 100_000, To: &logger, Value: big.NewInt(0), Data: input},
		&types.LegacyTx{Nonce: nonce + 1, GasPrice: price, Gas: 100_000, Data: common.FromHex("60006000f3")},
		&types.AccessListTx{ChainID: config.ChainID, Nonce: nonce + 2, GasPrice: price, Gas: 100_000, To: &logger, Data: input, AccessList: access},
		&types.DynamicFeeTx{ChainID: config.ChainID, Nonce: nonce + 3, GasTipCap: big.NewInt(2), GasFeeCap: price, Gas: 100_000, To: &common.Address{9}, Value: big.NewInt(256)},
		&types.BlobTx{ChainID: chain, Nonce: nonce + 4, GasTipCap: small, GasFeeCap: large, Gas: 100_000, To: logger, Value: new(uint256.Int), Data: input, AccessList: access, BlobFeeCap: uint256.NewInt(100), BlobHashes: []common.Hash{{1, 2}, {1, 3}}},
		&types.SetCodeTx{ChainID: chain, Nonce: nonce + 5, GasTipCap: small, GasFeeCap: large, Gas: 200_000, To: logger, Value: new(uint256.Int), Data: input, AuthList: []types.SetCodeAuthorization{auth}},
	}
}
