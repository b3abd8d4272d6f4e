package script_test

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/trace"
	"ashlar/evm/trace/script"
	"ashlar/worker"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// TestScriptByChanges traces a transaction in a worker by the stored changes of its block, and with all before it run in order.
// It calls a contract that exists only within the block, which calls one with a slot that an earlier transaction has changed.
func TestScriptByChanges(t *testing.T) {
	a, executor, block := shortLived(t)
	const code = `{seen: [], step: function(log, db) {
			var at = log.contract.getAddress()
			this.seen.push(log.op.toString(), toHex(at), db.getNonce(at), db.getBalance(at).toString(16), db.getCode(at).length, db.getState(at, toWord("0x0"))[31])
		},
		result: function(ctx, db) { return [this.seen, toHex(ctx.from), db.getNonce(ctx.from), db.getBalance(ctx.from).toString(16)] }` + rest
	raw, err := json.Marshal(map[string]string{"tracer": code, "timeout": "1m"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := trace.ParseConfig(raw, executor.Config())
	if err != nil {
		t.Fatal(err)
	}
	parent, err := a.Header(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	pool := worker.NewPool(1, "/proc/self/exe", "worker")
	t.Cleanup(pool.Close)
	run := func(state evm.State, options execute.ReplayOptions) string {
		t.Helper()
		question := &script.Question{
			Config: config, Executor: executor, Block: execute.Decoded(block), Options: options, First: 2, End: 3,
			Parent: execute.Parent{Header: parent.Header, State: state, Ancestors: archive.Ancestors{History: &a.History}},
		}
		var out []byte
		err := script.Run(t.Context(), pool, "caller", question, unbounded{}, func(traces *script.Traces) (err error) {
			out, err = traces.Append(out)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want := run(a.StateAt(0), execute.ReplayOptions{})
	if !strings.Contains(want, `"SLOAD"`) || !strings.Contains(want, `"SSTORE"`) {
		t.Fatalf("the transaction reads and writes no slot: %s", want)
	}
	stored, state := &countedBlock{archive: a}, &countedReads{State: a.StateAt(0)}
	if got := run(state, execute.ReplayOptions{Stored: stored}); got != want {
		t.Errorf("by changes the trace is %s\nin order it is %s", got, want)
	}
	if stored.asked != 1 || stored.accounts == 0 || stored.slots == 0 || stored.within == 0 {
		t.Errorf("the changes were not read, or not all of them: %+v", stored)
	}
	// The state before the block is read only for what has not changed.
	if state.accounts != stored.unchangedAccounts || state.slots != stored.unchangedSlots {
		t.Errorf("%d accounts and %d slots of the state before the block were read, want %d and %d", state.accounts, state.slots, stored.unchangedAccounts, stored.unchangedSlots)
	}
}

// shortLived returns an archive of one block. Its transactions create a contract, call another one that counts in a slot, call the
// first, which calls the other, call the other again, and destroy the first.
func shortLived(t *testing.T) (*archive.Archive, *execute.Executor, *types.Block) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	must(err)
	sender, factory, counter := crypto.PubkeyToAddress(key.PublicKey), common.Address{0xfa}, common.Address{0xc0}
	// Without input it destroys itself.
	initcode := program.New().ReturnData(append(common.FromHex("0x3660065733ff5b"), program.New().Call(nil, counter, 0, 0, 0, 0, 0).Bytes()...)).Bytes()
	made := crypto.CreateAddress2(factory, common.Hash{}, crypto.Keccak256(initcode))
	number := new(big.Int)
	genesis := &core.Genesis{
		Config: &params.ChainConfig{
			ChainID: big.NewInt(1), HomesteadBlock: number, EIP150Block: number, EIP155Block: number, EIP158Block: number, ByzantiumBlock: number,
			ConstantinopleBlock: number, PetersburgBlock: number, IstanbulBlock: number, BerlinBlock: number, LondonBlock: number, Ethash: new(params.EthashConfig),
		},
		GasLimit: 30_000_000, Difficulty: big.NewInt(1 << 17),
		Alloc: types.GenesisAlloc{
			sender:  {Balance: big.NewInt(params.Ether)},
			factory: {Balance: new(big.Int), Code: program.New().Create2(initcode, 0).Bytes()},
			// SSTORE(0, SLOAD(0) + 1)
			counter: {Balance: big.NewInt(3), Code: common.FromHex("0x60005460010160005500"), Storage: map[common.Hash]common.Hash{{}: {31: 5}}},
		},
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, ethash.NewFaker(), 1, func(_ int, g *core.BlockGen) {
		for _, call := range []types.LegacyTx{{To: &factory}, {To: &counter, Value: big.NewInt(0)}, {To: &made, Data: []byte{1}}, {To: &counter}, {To: &made}} {
			call.Nonce, call.GasPrice, call.Gas = g.TxNonce(sender), big.NewInt(params.GWei), 500_000
			g.AddTx(types.MustSignNewTx(key, g.Signer(), &call))
		}
	})
	a, err := archive.Create(t.Context(), ingesttest.Store(t), genesis, archive.TraceIndex)
	must(err)
	executor, err := execute.New(genesis.Config, execute.RecordTraces(true))
	must(err)
	importer, err := ingest.New(t.Context(), a, executor, genesis)
	must(err)
	must(importer.Import(t.Context(), ingesttest.SourceOf(blocks[:1])))
	return a, executor, blocks[0]
}

// countedReads counts what is read of a state.
type countedReads struct {
	evm.State
	accounts, slots int
}

func (c *countedReads) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	c.accounts++
	return c.State.Account(ctx, address)
}

func (c *countedReads) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	c.slots++
	return c.State.Slot(ctx, address, slot)
}

// countedBlock is what the archive has of block 1. It counts what is read of the changes.
type countedBlock struct {
	archive           *archive.Archive
	changes           *archive.Changes
	asked             int
	accounts, slots   int // that have changed
	within            int // codes that accounts have only within the block
	unchangedAccounts int
	unchangedSlots    int
}

func (c *countedBlock) AccessList(context.Context) ([]byte, error) { return nil, archive.ErrNotFound }

func (c *countedBlock) LogsBefore(context.Context, int) (uint64, error) { return 0, nil }

func (c *countedBlock) Changes(ctx context.Context) (stored execute.StoredChanges, err error) {
	c.asked++
	c.changes, err = c.archive.Changes(ctx, 1)
	return countedChanges{c}, err
}

// countedChanges implements execute.StoredChanges.
type countedChanges struct{ *countedBlock }

func (c countedChanges) Account(ctx context.Context, address common.Hash, step int) (*types.StateAccount, bool, error) {
	account, changed, err := c.changes.Account(ctx, address, step)
	if changed {
		c.accounts++
	} else {
		c.unchangedAccounts++
	}
	return account, changed, err
}

func (c countedChanges) Slot(ctx context.Context, address, slot common.Hash, step int) (common.Hash, bool, error) {
	value, changed, err := c.changes.Slot(ctx, address, slot, step)
	if changed {
		c.slots++
	} else {
		c.unchangedSlots++
	}
	return value, changed, err
}

func (c countedChanges) Code(ctx context.Context, hash common.Hash) ([]byte, bool, error) {
	code, ok, err := c.changes.Code(ctx, hash)
	if ok {
		c.within++
	}
	return code, ok, err
}
