package execute

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

var (
	sender   = common.HexToAddress("0x5e4de2")
	contract = common.HexToAddress("0xc0de")
	nobody   = common.HexToAddress("0x0b0d1")
)

func osakaConfig() *params.ChainConfig {
	config := *params.MergedTestChainConfig
	config.AmsterdamTime, config.BogotaTime, config.UBTTime = nil, nil, nil
	config.OsakaTime = new(uint64)
	schedule := *params.DefaultBlobSchedule
	config.BlobScheduleConfig = &schedule
	return &config
}

func newCaller(t testing.TB) *Executor {
	t.Helper()
	e, err := New(osakaConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func word(n uint64) common.Hash { return common.BigToHash(new(big.Int).SetUint64(n)) }

func ptr[T any](v T) *T { return &v }

// returning is code that returns the words that ops leave on the stack, one each.
func returning(ops ...vm.OpCode) []byte {
	p := program.New()
	for i, op := range ops {
		p.Op(op).Push(32 * i).Op(vm.MSTORE)
	}
	return p.Return(0, 32*len(ops)).Bytes()
}

// ending is code that ends with REVERT and a payload.
func ending(payload string) []byte {
	data, err := hex.DecodeString(strings.ReplaceAll(payload, " ", ""))
	if err != nil {
		panic(err)
	}
	return program.New().Mstore(data, 0).Push(len(data)).Push(0).Op(vm.REVERT).Bytes()
}

// looping is code that does something for ever.
func looping(body func(p *program.Program)) []byte {
	p := program.New()
	_, start := p.Jumpdest()
	body(p)
	return p.Jump(start).Bytes()
}

const (
	errorWords = "08c379a0 0000000000000000000000000000000000000000000000000000000000000020" +
		"000000000000000000000000000000000000000000000000000000000000000a 75736572206572726f7200000000000000000000000000000000000000000000"
	panicWords = "4e487b71 0000000000000000000000000000000000000000000000000000000000000011"
)

func TestCall(t *testing.T) {
	many := uint256.MustFromHex("0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff")
	tests := []struct {
		name    string
		code    []byte
		message Message
		output  string // hex
		err     string // "revert: " marks a RevertError
	}{
		{"nobody is there", nil, Message{To: &nobody}, "", ""},
		{"a word", returning(vm.CALLVALUE), Message{To: &contract, Value: uint256.NewInt(5), From: sender}, word(5).Hex()[2:], ""},
		{"creation returns the code", nil, Message{Data: program.New().Return(0, 3).Bytes()}, "000000", ""},
		{"revert", program.New().Push(0).Push(0).Op(vm.REVERT).Bytes(), Message{To: &contract}, "", "revert: execution reverted"},
		{"revert with a reason", ending(errorWords), Message{To: &contract}, "", "revert: execution reverted: user error"},
		{"revert with a panic", ending(panicWords), Message{To: &contract}, "", "revert: execution reverted: arithmetic underflow or overflow"},
		{"revert with an error of its own", ending("01020304"), Message{To: &contract}, "", "revert: execution reverted"},
		{"revert with half a reason", ending(errorWords[:73]), Message{To: &contract}, "", "revert: execution reverted"},
		{"invalid opcode", []byte{byte(vm.INVALID)}, Message{To: &contract}, "", "invalid opcode: INVALID"},
		{"stack underflow", []byte{byte(vm.ADD)}, Message{To: &contract}, "", "stack underflow (0 <=> 2)"},
		{"out of gas", returning(vm.SELFBALANCE), Message{To: &contract, Gas: ptr[uint64](21001)}, "", "out of gas"},
		{"less gas than a transaction costs", nil, Message{To: &contract, Gas: ptr[uint64](5000)}, "",
			"err: intrinsic gas too low: have 5000, want 21000 (supplied gas 5000)"},
		{"value that is not there", nil, Message{To: &contract, From: sender, Value: many}, "",
			"err: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000005e4DE2 have 1000000000 want " + many.Dec() + " (supplied gas 50000000)"},
		{"a price that cannot be paid", nil, Message{To: &contract, From: sender, GasPrice: uint256.NewInt(9), Gas: ptr[uint64](1e9)}, "",
			"err: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000005e4DE2 have 1000000000 want 3240000000 (supplied gas 360000000)"},
		{"a price below the base fee", nil, Message{To: &contract, From: sender, GasPrice: uint256.NewInt(6), Gas: ptr[uint64](21000)}, "",
			"err: max fee per gas less than block base fee: address 0x00000000000000000000000000000000005e4DE2, maxFeePerGas: 6, baseFee: 7 (supplied gas 21000)"},
		{"a tip above the cap", nil, Message{To: &contract, From: sender, MaxFeePerGas: uint256.NewInt(8), MaxPriorityFeePerGas: uint256.NewInt(9), Gas: ptr[uint64](21000)}, "",
			"err: max priority fee per gas higher than max fee per gas: address 0x00000000000000000000000000000000005e4DE2, maxPriorityFeePerGas: 9, maxFeePerGas: 8 (supplied gas 21000)"},
		{"both kinds of price", nil, Message{To: &contract, GasPrice: uint256.NewInt(1), MaxFeePerGas: uint256.NewInt(1)}, "",
			"both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"},
		{"both kinds of price, and blobs that create", nil, Message{GasPrice: uint256.NewInt(1), MaxFeePerGas: uint256.NewInt(1), BlobHashes: []common.Hash{{1}}}, "",
			"both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"},
		{"another chain", nil, Message{To: &contract, ChainID: uint256.NewInt(77)}, "", "chainId does not match node's (have=77, want=1)"},
		{"this chain", returning(vm.CHAINID), Message{To: &contract, ChainID: uint256.NewInt(1)}, word(1).Hex()[2:], ""},
		{"blobs that create", nil, Message{BlobHashes: []common.Hash{{1}}}, "",
			"blob transaction of type create"},
		{"authorizations that create", nil, Message{Authorizations: []types.SetCodeAuthorization{{}}}, "",
			"EIP-7702 transaction cannot be used to create contract"},
		{"a blob price without blobs", nil, Message{To: &contract, MaxFeePerBlobGas: uint256.NewInt(1)}, "", "maxFeePerBlobGas specified without blobVersionedHashes"},
		{"no blobs", nil, Message{To: &contract, BlobHashes: []common.Hash{}}, "", "err: blob transaction missing blob hashes (supplied gas 50000000)"},
		{"no authorizations", nil, Message{To: &contract, Authorizations: []types.SetCodeAuthorization{}}, "",
			"err: EIP-7702 transaction with empty auth list (sender 0x0000000000000000000000000000000000000000) (supplied gas 50000000)"},
		{"no gas price is seen where none is offered", returning(vm.GASPRICE, vm.BASEFEE), Message{To: &contract}, word(0).Hex()[2:] + word(0).Hex()[2:], ""},
		{"the price that is paid", returning(vm.GASPRICE, vm.BASEFEE), Message{To: &contract, From: sender, Gas: ptr[uint64](90000), MaxFeePerGas: uint256.NewInt(20), MaxPriorityFeePerGas: uint256.NewInt(2)},
			word(9).Hex()[2:] + word(7).Hex()[2:], ""},
	}
	e := newCaller(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(sender, 1e9, nil)
			w.put(contract, 0, test.code)
			output, err := e.Call(t.Context(), w.at(), &test.message, CallOptions{})
			if got := describe(err); got != test.err {
				t.Errorf("error:\ngot  %q\nwant %q", got, test.err)
			}
			if got := hex.EncodeToString(output); got != test.output {
				t.Errorf("output %s, want %s", got, test.output)
			}
		})
	}
}

// describe is an error with its kind.
func describe(err error) string {
	var reverted *RevertError
	var failed *CallError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &reverted):
		return "revert: " + err.Error()
	case errors.As(err, &failed):
		return err.Error()
	}
	return "failure: " + err.Error()
}

func TestCallSeesItsBlock(t *testing.T) {
	hashOf := func(number int) []byte {
		return program.New().Push(number).Op(vm.BLOCKHASH).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	}
	tests := []struct {
		name  string
		code  []byte
		block BlockOverrides
		want  common.Hash
	}{
		{"number", returning(vm.NUMBER), BlockOverrides{}, word(1000)},
		{"time", returning(vm.TIMESTAMP), BlockOverrides{}, word(12000)},
		{"gas limit", returning(vm.GASLIMIT), BlockOverrides{}, word(36_000_000)},
		{"fee recipient", returning(vm.COINBASE), BlockOverrides{}, word(0xfee)},
		{"randao", returning(vm.PREVRANDAO), BlockOverrides{}, word(0x4a4d)},
		{"default gas", returning(vm.GAS), BlockOverrides{}, word(50_000_000 - 21000 - 2)},
		{"hash of the parent", hashOf(999), BlockOverrides{}, word(0xb10c0000 + 999)},
		{"hash of an ancestor", hashOf(744), BlockOverrides{}, word(0xb10c0000 + 744)},
		{"hash of one too old", hashOf(743), BlockOverrides{}, word(0)},
		{"hash of itself", hashOf(1000), BlockOverrides{}, word(0)},
		{"other number", returning(vm.NUMBER), BlockOverrides{Number: uint256.NewInt(5)}, word(5)},
		{"hash below a lower number", hashOf(4), BlockOverrides{Number: uint256.NewInt(5)}, word(0xb10c0000 + 4)},
		{"hash below a higher number", hashOf(1200), BlockOverrides{Number: uint256.NewInt(1300)}, word(0)},
		{"other time", returning(vm.TIMESTAMP), BlockOverrides{Time: ptr[uint64](9)}, word(9)},
		{"other gas limit", returning(vm.GASLIMIT), BlockOverrides{GasLimit: ptr[uint64](9)}, word(9)},
		{"other fee recipient", returning(vm.COINBASE), BlockOverrides{FeeRecipient: &nobody}, common.BytesToHash(nobody[:])},
		{"other randao", returning(vm.PREVRANDAO), BlockOverrides{PrevRandao: ptr(word(9))}, word(9)},
		{"difficulty means nothing any more", returning(vm.DIFFICULTY), BlockOverrides{Difficulty: uint256.NewInt(9)}, word(0x4a4d)},
		{"other base fee is not paid either", returning(vm.BASEFEE), BlockOverrides{BaseFeePerGas: uint256.NewInt(9)}, word(0)},
		{"blob base fee", returning(vm.BLOBBASEFEE), BlockOverrides{}, word(1)},
		{"other blob base fee", returning(vm.BLOBBASEFEE), BlockOverrides{BlobBaseFee: uint256.NewInt(9)}, word(9)},
	}
	e := newCaller(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(contract, 0, test.code)
			output, err := e.Call(t.Context(), w.at(), &Message{To: &contract}, CallOptions{Block: test.block})
			if err != nil || common.BytesToHash(output) != test.want {
				t.Errorf("got %x, %v, want %x", output, err, test.want)
			}
		})
	}
}

// A block from before a fork that an override moves behind it has no fees.
func TestCallBlockMovedToOtherRules(t *testing.T) {
	config := osakaConfig()
	config.LondonBlock = big.NewInt(2000)
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.put(sender, 1e9, nil)
	w.put(contract, 0, returning(vm.BASEFEE, vm.BLOBBASEFEE))
	at := w.at()
	at.Header.BaseFee, at.Header.ExcessBlobGas = nil, nil
	at.Header.Difficulty = big.NewInt(1)
	message := &Message{From: sender, To: &contract, GasPrice: uint256.NewInt(1), Gas: ptr[uint64](90000)}
	_, err = e.Call(t.Context(), at, message, CallOptions{})
	if got := describe(err); got != "invalid opcode: BASEFEE" {
		t.Errorf("before: %v", got)
	}
	moved := CallOptions{Block: BlockOverrides{Number: uint256.NewInt(2000), PrevRandao: new(common.Hash)}}
	output, err := e.Call(t.Context(), at, message, moved)
	if err != nil || hex.EncodeToString(output) != word(0).Hex()[2:]+word(1).Hex()[2:] {
		t.Errorf("moved: %x, %v", output, err)
	}
	if _, err = e.EstimateGas(t.Context(), at, message, moved); err != nil {
		t.Errorf("estimate: %v", err)
	}
	if _, err = e.Call(t.Context(), at, &Message{To: &contract, MaxFeePerGas: uint256.NewInt(1)}, CallOptions{}); describe(err) != errNotLondon.Error() {
		t.Errorf("fee cap before London: %v", err)
	}
}

// A call gets at most ten times its block's gas limit, or what the network allows.
func TestCallGas(t *testing.T) {
	const all = math.MaxUint64
	tests := []struct{ limit, network, want uint64 }{
		{5000, all, 50_000}, {36_000_000, all, 360_000_000}, {300_000_000, all, 3_000_000_000}, {all, all, all}, {0, all, 0},
		{36_000_000, 50_000_000, 50_000_000}, {5000, 50_000_000, 50_000}, {all, 50_000_000, 50_000_000},
	}
	for _, test := range tests {
		e := newCaller(t)
		e.LimitCallGas(test.network)
		if got := e.callGas(&types.Header{GasLimit: test.limit}); got != test.want {
			t.Errorf("of a block of %d gas: %d, want %d", test.limit, got, test.want)
		}
	}
}

// The gas of a call is the same under the rules of Frontier, wherever an override takes it
// there from. A call that names no gas gets geth's default.
func TestCallGasFrontier(t *testing.T) {
	config := osakaConfig()
	config.EIP150Block = big.NewInt(10)
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.put(contract, 0, returning(vm.GAS))
	for _, number := range []uint64{9, 10} {
		options := CallOptions{Block: BlockOverrides{Number: uint256.NewInt(number)}}
		for gas, want := range map[*uint64]uint64{nil: 50_000_000, ptr[uint64](1e9): 360_000_000} {
			output, err := e.Call(t.Context(), w.at(), &Message{To: &contract, Gas: gas}, options)
			if err != nil || common.BytesToHash(output) != word(want-21002) {
				t.Errorf("at block %d: %x, %v, want %d", number, output, err, want-21002)
			}
		}
	}
}

func TestCallTimesOut(t *testing.T) {
	w := newWorld()
	w.put(contract, 0, looping(func(*program.Program) {}))
	at := w.at()
	at.Header.GasLimit = math.MaxUint64
	e := newCaller(t)
	message, options := &Message{To: &contract}, CallOptions{Time: time.Millisecond}
	const want = "execution aborted (timeout = 1ms)" // an estimate, with at most 16,777,216 gas, loops for ten times as long
	if _, err := e.Call(t.Context(), at, message, options); describe(err) != want {
		t.Errorf("call: %v", err)
	}
	if _, err := e.EstimateGas(t.Context(), at, message, options); describe(err) != want {
		t.Errorf("estimate: %v", err)
	}
	if _, err := e.AccessList(t.Context(), at, message, options); describe(err) != want {
		t.Errorf("access list: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := e.Call(ctx, at, message, CallOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("of a client that has gone: %v", err)
	}
}

// More calls than there are places for wait for one another, in time and in vain.
func TestCallsWait(t *testing.T) {
	w := newWorld()
	w.put(contract, 0, returning(vm.NUMBER))
	e := newCaller(t)
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			if _, err := e.Call(t.Context(), w.at(), &Message{To: &contract}, CallOptions{Time: time.Hour}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	places := 0
	for e.calls.TryAcquire(1) {
		places++
	}
	_, err := e.Call(t.Context(), w.at(), &Message{To: &contract}, CallOptions{Time: time.Millisecond})
	if got := describe(err); got != "execution aborted (timeout = 1ms)" {
		t.Errorf("without a place: %v", got)
	}
	e.calls.Release(int64(places))
}

// What cannot be read is never taken for what is not there.
func TestCallFailsWithItsStore(t *testing.T) {
	code := program.New().Push(7).Op(vm.SLOAD).Push(900).Op(vm.BLOCKHASH, vm.ADD).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	e := newCaller(t)
	for _, broken := range []string{"account", "slot", "code", "hash"} {
		t.Run(broken, func(t *testing.T) {
			w := newWorld()
			w.put(contract, 0, code)
			w.broken = broken
			message := &Message{To: &contract, From: sender}
			_, called := e.Call(t.Context(), w.at(), message, CallOptions{})
			_, estimated := e.EstimateGas(t.Context(), w.at(), message, CallOptions{})
			_, accessed := e.AccessList(t.Context(), w.at(), message, CallOptions{})
			priced := *message
			priced.GasPrice = uint256.NewInt(100)
			_, afforded := e.EstimateGas(t.Context(), w.at(), &priced, CallOptions{})
			if broken != "account" {
				afforded = errDisk // it has no money and gets no further
			}
			for _, err := range []error{called, estimated, accessed, afforded} {
				var failed *CallError
				if !errors.Is(err, errDisk) || errors.As(err, &failed) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// As in geth, only calls that are not traced must have blobs if they name a fee for them.
func TestTracedCallHasABlobPriceAlone(t *testing.T) {
	w := newWorld()
	w.put(contract, 0, returning(vm.BLOBBASEFEE))
	tracer := Tracer{Hooks: new(tracing.Hooks), Stop: func(error) {}}
	message := &Message{To: &contract, MaxFeePerBlobGas: uint256.NewInt(1)}
	if err := newCaller(t).TraceCall(t.Context(), w.at(), message, CallOptions{}, tracer); err != nil {
		t.Error(err)
	}
}
