package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/evm/trace/script"
	"ashlar/internal/await"
	"ashlar/worker"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// TestMain runs a worker if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := errors.Join(worker.Confine(), script.Serve(os.Stdin, os.Stdout)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// unbounded is room for any trace.
type unbounded struct{}

func (unbounded) Check(int) error { return nil }

// ledger is a state in which one contract has code.
type ledger struct {
	contract common.Address
	code     []byte
	reads    int
	err      error // of all reads
}

func (l *ledger) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	l.reads++
	account := types.NewEmptyStateAccount()
	account.Balance = uint256.NewInt(1e18)
	if address == evm.HashAddress(l.contract) {
		account.CodeHash = crypto.Keccak256(l.code)
	}
	return account, l.err
}

func (l *ledger) Slot(context.Context, common.Hash, common.Hash) (common.Hash, error) {
	l.reads++
	return common.Hash{31: 7}, l.err
}

func (l *ledger) Code(context.Context, common.Hash) ([]byte, error) { return l.code, l.err }

func (l *ledger) Node(context.Context, common.Hash, []byte, common.Hash) ([]byte, error) {
	return nil, evm.ErrMissing
}

func (l *ledger) BlockHash(context.Context, uint64) (common.Hash, error) { return common.Hash{1}, nil }

// bench asks questions about a call of a contract that reads a slot, in a loop if it has
// input.
type bench struct {
	pool  *worker.Pool
	state *ledger
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		pool: worker.NewPool(1, "/proc/self/exe", "worker"),
		// SLOAD(0), POP, BLOCKHASH(5), POP, STOP
		state: &ledger{contract: common.Address{1}, code: common.FromHex("0x6000545060054050" + "00")},
	}
	t.Cleanup(b.pool.Close)
	return b
}

// trace traces the call with a script.
func (b *bench) trace(ctx context.Context, code, timeout string) (string, error) {
	raw, err := json.Marshal(map[string]string{"tracer": code, "timeout": timeout})
	if err != nil {
		return "", err
	}
	config, err := trace.ParseConfig(raw, params.MergedTestChainConfig)
	if err != nil {
		return "", err
	}
	executor, err := execute.New(params.MergedTestChainConfig)
	if err != nil {
		return "", err
	}
	header := &types.Header{
		Number: big.NewInt(10), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: new(big.Int),
		WithdrawalsHash: new(common.Hash), BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64),
	}
	question := &script.Question{
		Config: config, Executor: executor,
		CallOptions: execute.CallOptions{Time: await.Patience}, // timeout is to end the script, not the call
		At:          execute.At{Header: header, State: b.state, Hashes: b.state},
		Message:     &execute.Message{To: &b.state.contract, Value: new(uint256.Int), AccessList: types.AccessList{{Address: common.Address{3}}}},
	}
	var out []byte
	err = script.Run(ctx, b.pool, "caller", question, unbounded{}, func(traces *script.Traces) (err error) {
		out, err = traces.Append(out)
		return err
	})
	return string(out), err
}

const rest = `, fault: function() {}}`

// TestScript: a script sees the call and the state.
func TestScript(t *testing.T) {
	b := newBench(t)
	got, err := b.trace(t.Context(), `{ops: [], step: function(log, db) { this.ops.push(log.op.toString()); this.slot = db.getState(log.contract.getAddress(), toWord("0x9"))[31] },
		result: function(ctx) { return {ops: this.ops, slot: this.slot, to: toHex(ctx.to)} }`+rest, "1m")
	want := `{"ops":["PUSH1","SLOAD","POP","PUSH1","BLOCKHASH","POP","STOP"],"slot":7,"to":"0x0100000000000000000000000000000000000000"}`
	if err != nil || got != want {
		t.Errorf("%s, %v\nexpected %s", got, err, want)
	}
	if b.state.reads < 3 {
		t.Errorf("the state was read %d times, expected an account and two slots at least", b.state.reads)
	}
}

// TestFailuresKeepWorkers: a script that fails is answered by its worker, which then serves
// the next one.
func TestFailuresKeepWorkers(t *testing.T) {
	b := newBench(t)
	for code, want := range map[string]string{
		`noSuchTracer`:            "noSuchTracer is not defined",
		`{`:                       "SyntaxError",
		`{result: function() {}}`: "must expose a function fault",
		`{result: function() { throw "no" }` + rest:                    "no",
		`{result: function() { null.x }` + rest:                        "TypeError",
		`{setup: function() { throw 1 }, result: function() {}` + rest: "1",
	} {
		_, err := b.trace(t.Context(), code, "1m")
		var failed *trace.Error
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected an error with %q", code, err, want)
		}
	}
	if b.state.err = errors.New("disk"); true {
		if _, err := b.trace(t.Context(), `{result: function() {}`+rest, "1m"); !errors.Is(err, b.state.err) {
			t.Errorf("failed reads: %v, expected %v", err, b.state.err)
		}
	}
}

// TestScriptsEnd: a script that does not end is ended by its time, wherever it runs: while
// it is made, set up, called, asked for its result, and in a built-in function.
func TestScriptsEnd(t *testing.T) {
	b := newBench(t)
	for name, code := range map[string]string{
		"made":    `{x: (function() { while (true) {} })(), result: function() {}` + rest,
		"set up":  `{setup: function() { while (true) {} }, result: function() {}` + rest,
		"step":    `{step: function() { while (true) {} }, result: function() {}` + rest,
		"result":  `{result: function() { while (true) {} }` + rest,
		"search":  `{result: function() { return [].indexOf.call({length: 1e15}, 1) }` + rest,
		"pattern": `{result: function() { return /^((a+)+)\2?$/.test(Array(60).join("a") + "c") }` + rest,
		"sort":    `{result: function() { var a = []; for (var i = 0; i < 1e6; i++) a.push(i); while (true) a.sort(function() { return 1 }) }` + rest,
	} {
		if _, err := b.trace(t.Context(), code, "100ms"); !errors.Is(err, trace.ErrTime) && (err == nil || err.Error() != trace.ErrTime.Error()) {
			t.Errorf("%s: %v, expected %v", name, err, trace.ErrTime)
		}
	}
}

// TestScriptsAreBounded: a script that takes too much memory ends alone. Its time is no
// limit, however busy the machine is.
func TestScriptsAreBounded(t *testing.T) {
	b := newBench(t)
	for name, test := range map[string]struct{ code, want string }{
		"an array":   {`{result: function() { var all = []; while (true) all.push({}) }` + rest, "memory limit"},
		"a text":     {`{result: function() { var text = "text"; while (true) text += text + "x" }` + rest, "memory limit"},
		"repetition": {`{result: function() { return "x".repeat(1 << 30) }` + rest, "memory limit"},
		"steps":      {`{all: [], step: function(log) { while (true) this.all.push([1]) }, result: function() {}` + rest, "memory limit"},
		"filling":    {`{result: function() { return Array(1e9).fill(7) }` + rest, "memory limit"},
		"copying":    {`{result: function() { return Array.from({length: 1e9}) }` + rest, "memory limit"},
		"a buffer":   {`{result: function() { return new ArrayBuffer(Math.pow(2, 32)) }` + rest, "memory limit"},
		"too large":  {`{result: function() { return new Uint8Array(Math.pow(2, 52)) }` + rest, "RangeError"},
		"recursion":  {`{result: function again() { [1].forEach(again) }` + rest, "limit"},
		"nesting":    {`{result: function() { return JSON.parse(Array(1 << 24).join("[")) }` + rest, "limit"},
		"source":     {`{result: function() { return eval(Array(1 << 22).join("(")) }` + rest, "limit"},
	} {
		if _, err := b.trace(t.Context(), test.code, "24h"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
	if got, err := b.trace(t.Context(), `{result: function() { return 1 }`+rest, "24h"); got != "1" || err != nil {
		t.Errorf("afterwards: %s, %v", got, err)
	}
}

// TestClientLeaves: a script ends when its client leaves, even in a built-in function.
func TestClientLeaves(t *testing.T) {
	b := newBench(t)
	ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	if _, err := b.trace(ctx, `{result: function() { return [].indexOf.call({length: 1e15}, 1) }`+rest, "1h"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, expected %v", err, context.DeadlineExceeded)
	}
	if running := b.pool.Running(); running != 0 {
		t.Errorf("%d workers have work, expected none", running)
	}
}
