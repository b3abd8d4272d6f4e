package api_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/rowcache"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

const distantBlocks = 40

var (
	// chaser reads slots 0 to 2, calls keeper, which reads its slot 3, and then follows a
	// chain: the slot in its input, and the slot that this one names.
	chaser = common.Address{0xcc, 19: 1}
	keeper = common.Address{0xcc, 19: 2}
)

func chaserCode() []byte {
	p := program.New()
	for slot := range 3 {
		p.Push(slot).Op(vm.SLOAD).Op(vm.POP)
	}
	p.StaticCall(uint256.NewInt(100_000), keeper, 0, 0, 0, 0).Op(vm.POP)
	p.Push(4).Op(vm.CALLDATALOAD).Op(vm.SLOAD).Op(vm.SLOAD).Push(0).Op(vm.MSTORE)
	return p.Return(0, 32).Bytes()
}

// distantChain makes a chain whose tries have several levels, with a log in each block.
func distantChain(t *testing.T) (kv.Store, []*types.Block) {
	g := madeGenesis()
	for i := range 3000 {
		address := common.BytesToAddress(crypto.Keccak256(binary.BigEndian.AppendUint32(nil, uint32(i))))
		g.Alloc[address] = types.Account{Balance: big.NewInt(int64(i + 1))}
	}
	storage := map[common.Hash]common.Hash{}
	for i := range uint64(1000) {
		storage[common.BigToHash(new(big.Int).SetUint64(i))] = common.BigToHash(new(big.Int).SetUint64(i*7%1000 + 1))
	}
	g.Alloc[chaser] = types.Account{Nonce: 1, Code: chaserCode(), Balance: new(big.Int), Storage: storage}
	g.Alloc[keeper] = types.Account{Nonce: 1, Code: program.New().Push(3).Op(vm.SLOAD).Op(vm.STOP).Bytes(), Balance: new(big.Int), Storage: storage}
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	signer := types.LatestSigner(g.Config)
	_, blocks, _ := core.GenerateChainWithGenesis(g, beacon.New(ethash.NewFaker()), distantBlocks, func(i int, b *core.BlockGen) {
		b.SetParentBeaconRoot(common.Hash{byte(i + 1)})
		for range 3 {
			b.AddTx(types.MustSignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: g.Config.ChainID, Nonce: b.TxNonce(crypto.PubkeyToAddress(key.PublicKey)), GasTipCap: big.NewInt(3),
				GasFeeCap: new(big.Int).Add(b.BaseFee(), big.NewInt(5)), Gas: madeTransaction, To: &logger, Data: common.Hash{1, 31: byte(i)}.Bytes(),
			}))
		}
	})
	store, settled, executor := newChain(t, g)
	importInto(t, settled, executor, g, ingesttest.SourceOf(slices.Clone(blocks)))
	return store, append([]*types.Block{g.ToBlock()}, blocks...)
}

// distantService serves a store in which each statement takes a millisecond, with empty
// caches.
func distantService(t *testing.T, store kv.Store, blocks []*types.Block) (*service, *kvtest.Distant) {
	distant := &kvtest.Distant{Store: store, Statement: time.Millisecond}
	cached, err := rowcache.New(t.Context(), distant, rowcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), cached)
	if err != nil {
		t.Fatal(err)
	}
	head, _ := a.Settled()
	cached.Follow(head.Number, nil)
	s := serveConfigured(query.NewChain(a, nil, executorOf(t, a)), api.Config{ClientVersion: "Ashlar/test"})
	s.blocks = blocks
	return s, distant
}

func executorOf(t *testing.T, a *archive.Archive) *execute.Executor {
	executor, err := execute.New(a.Genesis().Config, execute.RecordTraces(true))
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

// TestRoundTrips counts how often a question waits for the store, one wait after the other,
// when nothing is cached. Reads that are made side by side are one wait.
func TestRoundTrips(t *testing.T) {
	store, blocks := distantChain(t)
	const number = "0x14"
	block := blocks[20]
	hash := block.Transactions()[1].Hash()
	key := common.BytesToAddress(crypto.Keccak256(binary.BigEndian.AppendUint32(nil, 7)))
	absent := common.Address{1, 2, 3}
	sender := crypto.PubkeyToAddress(testECDSA(t).PublicKey)
	slots := []string{"0x1", "0x63", "0x2a", "0xffffff"}
	filter := map[string]any{"fromBlock": "0x5", "toBlock": "0x20", "address": logger}
	topics := map[string]any{"fromBlock": "0x5", "toBlock": "0x20", "address": logger, "topics": []any{nil, []any{common.Hash{31: 2}, common.Hash{31: 9}}}}
	many := []common.Address{logger}
	for i := range uint32(700) {
		many = append(many, common.BytesToAddress(crypto.Keccak256(binary.BigEndian.AppendUint32(nil, i))))
	}
	ofMany := map[string]any{"fromBlock": "0x5", "toBlock": "0x20", "address": many}
	for _, question := range []struct {
		method string
		args   []any
		want   int64
	}{
		{"eth_getBalance", []any{key, number}, 1},
		{"eth_getTransactionCount", []any{absent, number}, 1},
		{"eth_getStorageAt", []any{chaser, "0x5", number}, 1},
		{"eth_getAccount", []any{chaser, number}, 1},
		{"eth_getTransactionBySenderAndNonce", []any{sender, "0x3a"}, 7}, // the account after the head and in 5 halvings of 40 blocks, and the block
		{"eth_getTransactionBySenderAndNonce", []any{sender, "0x78"}, 1}, // not reached after the head
		{"eth_getCode", []any{chaser, number}, 2},                        // the code's hash is in the account
		{"eth_getBlockByNumber", []any{number, true}, 1},
		{"eth_getBlockReceipts", []any{number}, 1},
		{"eth_getBlockByHash", []any{block.Hash(), true}, 2},
		{"eth_getTransactionByBlockNumberAndIndex", []any{number, "0x1"}, 1},
		{"eth_getTransactionByHash", []any{hash}, 2},
		{"eth_getRawTransactionByHash", []any{hash}, 2},
		{"eth_getTransactionReceipt", []any{hash}, 2},
		{"eth_getLogs", []any{filter}, 2},
		{"eth_getLogs", []any{topics}, 2},
		{"eth_getLogs", []any{ofMany}, 4}, // 256 addresses at once, 256, the others, and the blocks
		{"eth_getLogs", []any{map[string]any{"blockHash": block.Hash()}}, 3},
		{"rollup_getEvents", []any{map[string]any{"address": logger, "chunk_size": 20}}, 2},
		{"eth_getProof", []any{key, []any{}, number}, 1},
		{"eth_getProof", []any{chaser, slots, number}, 1},
		{"eth_getProof", []any{absent, []any{}, number}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, distant := distantService(t, store, blocks)
			distant.Count.Store(0)
			began := time.Now()
			answer := s.answer(t, question.method, question.args...)
			waits := time.Since(began).Milliseconds()
			what := fmt.Sprintf("%s%v", question.method, question.args)
			if answer.Error != nil || len(answer.Result) < 3 {
				t.Errorf("%s: %s, error %s", what, answer.Result, answer.Error)
			}
			if waits != question.want {
				t.Errorf("%s: %d round trips with %d statements, expected %d", what, waits, distant.Count.Load(), question.want)
			}
			t.Logf("%-45s %d round trips, %2d statements", question.method, waits, distant.Count.Load())
		})
	}
}

// TestRoundTripsOfCalls counts the waits of a call of a function that was called before, at
// another block and with other arguments. Its own data force two: the slot that its input
// names, and the one that this slot names.
func TestRoundTripsOfCalls(t *testing.T) {
	store, blocks := distantChain(t)
	synctest.Test(t, func(t *testing.T) {
		s, _ := distantService(t, store, blocks)
		for i, want := range []int64{-1, 3, 3, 3} {
			input := append([]byte{1, 2, 3, 4}, common.Hash{31: byte(100 + i)}.Bytes()...)
			message := map[string]any{"to": chaser, "input": fmt.Sprintf("%#x", input)}
			began := time.Now()
			var result string
			s.ask(t, &result, "eth_call", message, fmt.Sprintf("%#x", 10+i))
			waits := time.Since(began).Milliseconds()
			t.Logf("call %d: %d round trips", i+1, waits)
			if want >= 0 && waits != want {
				t.Errorf("call %d: %d round trips, expected %d", i+1, waits, want)
			}
		}
	})
}

// TestRoundTripsOfTraces counts the waits of filters of traces of which none is executed: 701
// senders, 701 receivers in two roles each, both at once, and those that skip every trace.
func TestRoundTripsOfTraces(t *testing.T) {
	store, blocks := distantChain(t)
	var many []common.Address
	for i := range uint32(701) {
		many = append(many, common.BytesToAddress(crypto.Keccak256(binary.BigEndian.AppendUint32(nil, i))))
	}
	for _, question := range []struct {
		what   string
		filter map[string]any
		want   int64
	}{
		{"senders", map[string]any{"fromAddress": many}, 3},
		{"receivers", map[string]any{"toAddress": many}, 6},
		{"both", map[string]any{"fromAddress": many, "toAddress": many, "mode": "intersection"}, 3}, // no sender occurs, so no receiver is looked for
		{"all", map[string]any{"after": 1 << 40}, 3},                                                // 8 blocks at once, 16, the others
	} {
		synctest.Test(t, func(t *testing.T) {
			s, distant := distantService(t, store, blocks)
			distant.Count.Store(0)
			question.filter["fromBlock"], question.filter["toBlock"] = "0x5", "0x20"
			began := time.Now()
			answer := s.answer(t, "trace_filter", question.filter)
			waits := time.Since(began).Milliseconds()
			if answer.Error != nil || string(answer.Result) != "[]" {
				t.Errorf("%s: %s, error %s", question.what, answer.Result, answer.Error)
			}
			if waits != question.want {
				t.Errorf("%s: %d round trips with %d statements, expected %d", question.what, waits, distant.Count.Load(), question.want)
			}
		})
	}
}
