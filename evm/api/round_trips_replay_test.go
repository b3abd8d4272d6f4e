package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	hops         = 24 // slots that a transaction reads, each named by the one before
	hopContracts = 12
	hopSenders   = 16
	hopsOfBlock  = 24 // transactions
	hopBlocks    = 8
)

// hopper is a contract that follows a chain of slots from the one in its input. Then it adds one to its slot 5000.
func hopper(i int) common.Address { return common.Address{0xdd, 19: byte(i + 1)} }

func hopperCode(i int) []byte {
	p := program.New().Push(i + 1).Op(vm.POP).Push(0).Op(vm.CALLDATALOAD) // each has another code
	for range hops {
		p.Op(vm.SLOAD)
	}
	p.Op(vm.POP).Push(5000).Op(vm.SLOAD).Push(1).Op(vm.ADD).Push(5000).Op(vm.SSTORE)
	return p.Op(vm.STOP).Bytes()
}

// hopChain makes a chain whose blocks have transactions that each wait for many slots, one after the other. Some depend on
// the ones before: the senders are fewer than the transactions, and all transactions of a contract count in one slot.
func hopChain(t *testing.T, traces, amsterdam bool) (kv.Store, []*types.Block) {
	g := madeGenesis()
	if amsterdam {
		schedule := *params.DefaultBlobSchedule
		g.Config.OsakaTime, g.Config.AmsterdamTime, g.Config.BogotaTime, g.Config.BlobScheduleConfig = new(uint64), new(uint64), nil, &schedule
		g.Alloc[params.BuilderDepositAddress] = types.Account{Nonce: 1, Code: params.BuilderDepositCode, Balance: new(big.Int)}
		g.Alloc[params.BuilderExitAddress] = types.Account{Nonce: 1, Code: params.BuilderExitCode, Balance: new(big.Int)}
	}
	random := rand.New(rand.NewPCG(7, 8))
	storage := map[common.Hash]common.Hash{}
	for from, to := range random.Perm(1000) {
		storage[common.BigToHash(big.NewInt(int64(from)))] = common.BigToHash(big.NewInt(int64(to)))
	}
	for i := range hopContracts {
		g.Alloc[hopper(i)] = types.Account{Nonce: 1, Code: hopperCode(i), Balance: new(big.Int), Storage: storage}
	}
	keys := make([]*ecdsa.PrivateKey, hopSenders)
	for i := range keys {
		key, err := crypto.ToECDSA(crypto.Keccak256(binary.BigEndian.AppendUint32(nil, uint32(i))))
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
		g.Alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(1e18))}
	}
	signer := types.LatestSigner(g.Config)
	_, blocks, _ := core.GenerateChainWithGenesis(g, beacon.New(ethash.NewFaker()), hopBlocks, func(i int, b *core.BlockGen) {
		b.SetCoinbase(common.Address{0xc0})
		b.SetParentBeaconRoot(common.Hash{byte(i + 1)})
		for n := range hopsOfBlock {
			key := keys[n%hopSenders]
			b.AddTx(types.MustSignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: g.Config.ChainID, Nonce: b.TxNonce(crypto.PubkeyToAddress(key.PublicKey)), GasTipCap: big.NewInt(3),
				GasFeeCap: new(big.Int).Add(b.BaseFee(), big.NewInt(5)), Gas: 400_000, To: new(hopper(n % hopContracts)),
				Data: common.BigToHash(big.NewInt(random.Int64N(1000))).Bytes(),
			}))
		}
	})
	store, settled, executor := newChainWith(t, g, traces)
	importInto(t, settled, executor, g, ingesttest.SourceOf(slices.Clone(blocks)))
	return store, append([]*types.Block{g.ToBlock()}, blocks...)
}

// embeddedService serves a store whose reads take no time.
func embeddedService(t *testing.T, store kv.Store) *service {
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return serveConfigured(query.NewChain(a, nil, executorOf(t, a)), api.Config{ClientVersion: "Ashlar/test"})
}

// TestRoundTripsOfReplays counts the waits of a block's replay when nothing is cached. Its 24 transactions read 24 slots each, one
// after the other. The answers are those of an embedded store.
func TestRoundTripsOfReplays(t *testing.T) {
	const number = "0x6"
	for name, chain := range map[string]struct {
		traces, amsterdam bool
		want              map[string]int64 // most round trips: the depth of a transaction, and what comes before and after it
	}{
		"stored changes": {traces: true, want: map[string]int64{
			"debug_traceBlockByNumber": 38, "debug_traceBlock": 38, "debug_traceTransaction": 34, "debug_traceCall": 31,
			"trace_block": 38, "trace_replayBlockTransactions": 38, "trace_replayTransaction": 34,
			"trace_filter": 44, "debug_intermediateRoots": 50, "debug_executionWitness": 55,
		}},
		"no changes": {want: map[string]int64{
			"debug_traceBlockByNumber": 38, "debug_traceBlock": 38, "debug_traceTransaction": 38, "debug_traceCall": 62, // the call after the 20 transactions
			"trace_block": 38, "trace_replayBlockTransactions": 38, "trace_replayTransaction": 38,
			"debug_intermediateRoots": 50, "debug_executionWitness": 55,
		}},
		"access list": {traces: true, amsterdam: true, want: map[string]int64{ // which says what is read, but for the block that is a parameter
			"debug_traceBlockByNumber": 6, "debug_traceBlock": 38, "debug_traceTransaction": 8, "debug_traceCall": 31,
			"trace_block": 6, "trace_replayBlockTransactions": 6, "trace_replayTransaction": 8,
			"trace_filter": 14, "debug_intermediateRoots": 40, "debug_executionWitness": 70,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store, blocks := hopChain(t, chain.traces, chain.amsterdam)
			block := blocks[6]
			encoded, err := rlp.EncodeToBytes(block)
			if err != nil {
				t.Fatal(err)
			}
			embedded := embeddedService(t, store)
			calls := map[string]any{"tracer": "callTracer"}
			questions := []struct {
				method string
				args   []any
			}{
				{"debug_traceBlockByNumber", []any{number, calls}},
				{"debug_traceBlock", []any{hexutil.Bytes(encoded), calls}},
				{"debug_traceTransaction", []any{block.Transactions()[20].Hash(), calls}},
				{"debug_traceCall", []any{map[string]any{"to": hopper(3), "input": common.Hash{31: 9}}, number, map[string]any{"txIndex": "0x14"}}},
				{"trace_block", []any{number}},
				{"trace_replayBlockTransactions", []any{number, []string{"trace", "stateDiff"}}},
				{"trace_replayTransaction", []any{block.Transactions()[20].Hash(), []string{"trace"}}},
				{"debug_intermediateRoots", []any{block.Hash()}},
				{"debug_executionWitness", []any{number}},
			}
			if chain.traces {
				from := crypto.PubkeyToAddress(testECDSA(t).PublicKey)
				questions = append(questions, struct {
					method string
					args   []any
				}{"trace_filter", []any{map[string]any{"fromBlock": number, "toBlock": number, "toAddress": []any{hopper(2), hopper(7), from}}}})
			}
			for _, question := range questions {
				want := embedded.answer(t, question.method, question.args...)
				if want.Error != nil {
					t.Fatalf("%s: error %s", question.method, want.Error)
				}
				synctest.Test(t, func(t *testing.T) {
					waits, statements := askTwice(t, store, blocks, want.Result, question.method, question.args...)
					if waits > chain.want[question.method] {
						t.Errorf("%s: %d round trips with %d statements, expected at most %d", question.method, waits, statements, chain.want[question.method])
					}
					t.Logf("%-32s %4d round trips, %5d statements", question.method, waits, statements)
				})
			}
		})
	}
}

// askTwice asks a reader that has read nothing, in a bubble, and returns how often it waited and how many statements it made. Both answers are
// expected to be want, the second without a statement.
func askTwice(t *testing.T, store kv.Store, blocks []*types.Block, want []byte, method string, params ...any) (waits, statements int64) {
	t.Helper()
	s, distant := distantService(t, store, blocks)
	distant.Count.Store(0)
	began := time.Now()
	answer := s.answer(t, method, params...)
	waits, statements = time.Since(began).Milliseconds(), distant.Count.Load()
	if !bytes.Equal(answer.Result, want) || answer.Error != nil {
		t.Errorf("%s: %.300s, error %s, expected %.300s", method, answer.Result, answer.Error, want)
	}
	again := s.answer(t, method, params...)
	if !bytes.Equal(again.Result, want) {
		t.Errorf("%s, again: %.300s, expected %.300s", method, again.Result, want)
	}
	if more := distant.Count.Load() - statements; more > 0 {
		t.Errorf("%s, again: %d statements", method, more)
	}
	return waits, statements
}

// TestCanceledReplayLeavesNothing cancels a replay while its transactions read side by side.
func TestCanceledReplayLeavesNothing(t *testing.T) {
	store, blocks := hopChain(t, true, false)
	for _, after := range []time.Duration{5, 9, 15, 20} {
		synctest.Test(t, func(t *testing.T) {
			took := cancelAfter(t, store, blocks, after*time.Millisecond, `{"jsonrpc":"2.0","id":1,"method":"debug_traceBlockByNumber","params":["0x6",{"tracer":"callTracer"}]}`)
			if took > (after+2)*time.Millisecond {
				t.Errorf("a replay that was canceled after %d ms took %s", after, took)
			}
		})
	}
}

// cancelAfter cancels a request to a reader that has read nothing, in a bubble, and returns how long it took. A goroutine that it
// left would fail the bubble. It is expected to fail, and to read nothing after its answer.
func cancelAfter(t *testing.T, store kv.Store, blocks []*types.Block, after time.Duration, request string) (took time.Duration) {
	t.Helper()
	s, distant := distantService(t, store, blocks)
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(after+time.Microsecond, cancel)
	defer stop.Stop()
	began := time.Now()
	answer := s.Answer(ctx, []byte(request), nil)
	took = time.Since(began)
	if !bytes.Contains(answer, []byte(`"error"`)) {
		t.Errorf("a request that was canceled after %s answered %.200s", after, answer)
	}
	statements := distant.Count.Load()
	time.Sleep(time.Second)
	if more := distant.Count.Load() - statements; more > 0 {
		t.Errorf("%d statements after the answer", more)
	}
	return took
}
