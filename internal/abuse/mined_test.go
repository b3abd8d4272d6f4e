package abuse

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"

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

// Contracts of a minedChain, by what makes the traces of a call of it long.
var (
	caller   = common.HexToAddress("0xca11")    // calls with long inputs
	payer    = common.HexToAddress("0x9a1d")    // transfers
	reverter = common.HexToAddress("0x5e5e")    // what it returns
	writer   = common.HexToAddress("0x3317e5")  // slots
	coder    = common.HexToAddress("0xc0de")    // its code
	endless  = common.HexToAddress("0xe4d1e55") // it does not end
	hashing  = common.HexToAddress("0x8a54")    // a precompiled contract does not end
)

// minedChain is a chain whose blocks and transactions have traces that are longer than
// answerBytes, in files. Its gas limit allows transactions that take hours.
type minedChain struct {
	genesis, chain string
	heavy, many    *types.Block // a transaction for each contract that ends; many transactions
	unmined        []*types.Transaction
	unminedBlocks  map[string]string // RLP of blocks that take hours
	greedy         string            // RLP of a block with a gas limit that its parent does not allow
}

func newMinedChain(t *testing.T) *minedChain {
	t.Helper()
	config := *params.MergedTestChainConfig
	config.PragueTime, config.OsakaTime, config.AmsterdamTime = nil, nil, nil // which limit the gas of a transaction
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		t.Fatal(err)
	}
	code := func(body func(p *program.Program)) types.Account {
		p := program.New()
		body(p)
		return types.Account{Code: p.Bytes(), Balance: big.NewInt(1000)}
	}
	loop := program.New()
	_, start := loop.Jumpdest()
	loop.Jump(start)
	genesis := &core.Genesis{
		Config: &config, GasLimit: 1 << 40, Difficulty: new(big.Int), BaseFee: big.NewInt(7),
		Alloc: types.GenesisAlloc{
			crypto.PubkeyToAddress(key.PublicKey): {Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)},
			caller: code(func(p *program.Program) {
				for range 100 {
					p.Call(nil, 0xdddd, 0, 0, 10_000, 0, 0).Op(vm.POP)
				}
			}),
			payer: code(func(p *program.Program) {
				for range 500 {
					p.Call(nil, 0xdddd, 1, 0, 0, 0, 0).Op(vm.POP)
				}
			}),
			reverter: code(func(p *program.Program) { p.Push(40_000).Push(0).Op(vm.REVERT) }),
			writer: code(func(p *program.Program) {
				for slot := range 600 {
					p.Sstore(slot, 1)
				}
			}),
			coder:   {Code: make([]byte, 40_000), Balance: new(big.Int)},
			endless: {Code: loop.Bytes(), Balance: new(big.Int)},
			// BLAKE2F with as many rounds as it takes.
			hashing: code(func(p *program.Program) {
				p.Push(0xffffffff).Push(224).Op(vm.SHL).Push(0).Op(vm.MSTORE)
				for range 100 {
					p.Call(nil, 9, 0, 0, 213, 0, 64).Op(vm.POP)
				}
			}),
		},
	}
	nonce := uint64(0)
	signed := func(to common.Address, gas uint64, price *big.Int, data []byte) *types.Transaction {
		nonce++
		return types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{Nonce: nonce - 1, To: &to, Gas: gas, GasPrice: price, Data: data})
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 2, func(i int, b *core.BlockGen) {
		if i == 0 {
			for _, contract := range []common.Address{caller, payer, reverter, writer, coder} {
				b.AddTx(signed(contract, 20_000_000, b.BaseFee(), nil))
			}
			return
		}
		for range 100 {
			b.AddTx(signed(common.Address{0xdd}, 21_000, b.BaseFee(), nil))
		}
		for range 3 {
			b.AddTx(signed(common.Address{0xdd}, 1_000_000, b.BaseFee(), make([]byte, 30_000)))
		}
	})
	folder := t.TempDir()
	c := &minedChain{genesis: filepath.Join(folder, "genesis.json"), chain: filepath.Join(folder, "chain.rlp"), heavy: blocks[0], many: blocks[1]}
	encoded, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.genesis, encoded)
	write(t, c.chain, append(encode(t, blocks[0]), encode(t, blocks[1])...))
	c.unmined = []*types.Transaction{signed(caller, 20_000_000, big.NewInt(params.GWei), nil)}
	next := func(contract common.Address, gas uint64) string {
		nonce--
		header := types.CopyHeader(blocks[1].Header())
		header.ParentHash, header.Number, header.Time, header.GasLimit = blocks[1].Hash(), big.NewInt(3), header.Time+12, gas
		body := types.Body{Transactions: types.Transactions{signed(contract, gas, new(big.Int), nil)}, Withdrawals: types.Withdrawals{}}
		return hexutil.Encode(encode(t, types.NewBlockWithHeader(header).WithBody(body)))
	}
	limit := blocks[1].GasLimit()
	c.unminedBlocks = map[string]string{"a loop": next(endless, limit), "a precompiled contract": next(hashing, limit)}
	c.greedy = next(caller, 4*limit)
	return c
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	encoded, err := rlp.EncodeToBytes(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// of is the hash of the heavy block's transaction to a contract.
func (c *minedChain) of(contract common.Address) common.Hash {
	for _, tx := range c.heavy.Transactions() {
		if *tx.To() == contract {
			return tx.Hash()
		}
	}
	panic("no transaction to " + contract.Hex())
}

// largeTraces are requests for traces of the chain that are longer than answerBytes, by
// the name of what makes them long.
func (c *minedChain) largeTraces(t *testing.T) map[string]string {
	t.Helper()
	requests := make(map[string]string)
	add := func(name, method string, params ...any) {
		requests[name] = request(method, params...)
	}
	raw, err := c.unmined[0].MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	calls, slots := map[string]any{"tracer": "callTracer", "timeout": "10m"}, map[string]any{"tracer": "prestateTracer", "tracerConfig": map[string]any{"diffMode": true}, "timeout": "10m"}
	text := map[string]any{"tracer": `{fault: function() {}, result: function() { return Array(100000).join("x") }}`, "timeout": "10m"}
	sender := common.Address{}
	if sender, err = types.Sender(types.LatestSignerForChainID(c.unmined[0].ChainId()), c.unmined[0]); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]any{"callTracer": calls, "prestateTracer": slots, "struct logger": map[string]any{}, "JavaScript": text} {
		transaction := c.of(caller)
		if name == "prestateTracer" || name == "struct logger" {
			transaction = c.of(writer)
		}
		add("debug_traceTransaction, "+name, "debug_traceTransaction", transaction, config)
		add("debug_traceBlockByNumber, "+name, "debug_traceBlockByNumber", "0x1", config)
		add("debug_traceBlockByHash, "+name, "debug_traceBlockByHash", c.heavy.Hash(), config)
		add("debug_traceBlock, "+name, "debug_traceBlock", hexutil.Encode(encode(t, c.heavy)), config)
	}
	between := map[string]any{"tracer": "callTracer", "txIndex": "0x1", "timeout": "10m"}
	add("debug_traceCall between transactions", "debug_traceCall", map[string]any{"to": caller, "gas": "0x1312d00"}, "0x1", between)
	add("debug_executionWitness", "debug_executionWitness", "0x1")
	add("debug_executionWitness, legacy", "debug_executionWitness", "0x1", "legacy")
	add("debug_executionWitnessByBlockHash", "debug_executionWitnessByBlockHash", c.heavy.Hash())
	add("debug_storageRangeAt", "debug_storageRangeAt", c.many.Hash(), 0, writer, "0x", 1000)
	add("debug_accountRange", "debug_accountRange", "0x1", "0x", 256, false, false, true)
	for _, kind := range []string{"trace", "stateDiff", "vmTrace"} {
		transaction := c.of(caller)
		if kind != "trace" {
			transaction = c.of(writer)
		}
		add("trace_replayTransaction, "+kind, "trace_replayTransaction", transaction, []string{kind})
		add("trace_replayBlockTransactions, "+kind, "trace_replayBlockTransactions", "0x1", []string{kind})
	}
	many := [][]any{}
	for range 3 {
		many = append(many, []any{map[string]any{"to": reverter}, []string{"trace"}})
	}
	add("trace_callMany", "trace_callMany", many, "0x1")
	bundle := map[string]any{"transactions": []any{map[string]any{"to": reverter}, map[string]any{"to": reverter}, map[string]any{"to": reverter}}}
	add("debug_traceCallMany", "debug_traceCallMany", []any{bundle}, map[string]any{"blockNumber": "0x1"}, map[string]any{"tracer": "callTracer"})
	add("trace_block", "trace_block", "0x1")
	add("trace_transaction", "trace_transaction", c.of(caller))
	add("trace_rawTransaction", "trace_rawTransaction", hexutil.Encode(raw), []string{"trace"})
	add("trace_filter by an address", "trace_filter", map[string]any{"fromBlock": "0x1", "toBlock": "0x1", "toAddress": []any{caller}, "fromAddress": []any{caller}})
	add("ots_traceTransaction", "ots_traceTransaction", c.of(caller))
	add("ots_getInternalOperations", "ots_getInternalOperations", c.of(payer))
	add("ots_getTransactionError", "ots_getTransactionError", c.of(reverter))
	add("ots_getBlockTransactions", "ots_getBlockTransactions", 2, 0, 100)
	add("ots_searchTransactionsBefore", "ots_searchTransactionsBefore", sender, 0, 25)
	add("ots_searchTransactionsAfter", "ots_searchTransactionsAfter", sender, 0, 100)
	return requests
}

// request is the text of a request.
func request(method string, params ...any) string {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	return string(text)
}
