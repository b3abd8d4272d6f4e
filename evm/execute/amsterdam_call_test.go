package execute_test

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// amsterdam is the end of a chain under the rules of Amsterdam, on which tests build.
type amsterdam struct {
	*ingesttest.Follower
	parent execute.Parent
	nonce  uint64 // of the sender
}

// amsterdamSender is an account with balance in that chain.
func amsterdamSender(t testing.TB) (common.Address, func(types.TxData) *types.Transaction) {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte{'c', 2}))
	if err != nil {
		t.Fatal(err)
	}
	return crypto.PubkeyToAddress(key.PublicKey), func(data types.TxData) *types.Transaction {
		return types.MustSignNewTx(key, types.LatestSignerForChainID(data.(*types.DynamicFeeTx).ChainID), data)
	}
}

func newAmsterdam(t testing.TB) *amsterdam {
	t.Helper()
	genesis, blocks := ingesttest.Crossing(t)
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	for _, block := range blocks {
		if err := f.Add(t.Context(), block); err != nil {
			t.Fatal(err)
		}
	}
	history, number, err := f.Locate(t.Context(), blocks[len(blocks)-1].Hash())
	if err != nil {
		t.Fatal(err)
	}
	a := &amsterdam{Follower: f, parent: execute.Parent{
		Header: blocks[len(blocks)-1].Header(), State: history.StateAt(number), Ancestors: archive.Ancestors{History: history},
	}}
	sender, _ := amsterdamSender(t)
	for _, block := range blocks {
		for _, tx := range block.Transactions() {
			if from, err := types.Sender(types.LatestSigner(genesis.Config), tx); err == nil && from == sender {
				a.nonce = tx.Nonce() + 1
			}
		}
	}
	return a
}

// at is the head as calls see it.
func (a *amsterdam) at() execute.At {
	return execute.At{Header: a.parent.Header, State: a.parent.State}
}

// included puts a message into the next block, as a transaction with that gas and access
// list, and returns its receipt; nil and the reason if it cannot be included.
func (a *amsterdam) included(t *testing.T, m *execute.Message, gas uint64, list types.AccessList) (*types.Receipt, error) {
	t.Helper()
	_, sign := amsterdamSender(t)
	tx := sign(&types.DynamicFeeTx{
		ChainID: a.Executor.Config().ChainID, Nonce: a.nonce, GasTipCap: common.Big1, GasFeeCap: big.NewInt(100 * params.GWei),
		Gas: gas, To: m.To, Value: m.Value.ToBig(), Data: m.Data, AccessList: list,
	})
	built, leftOut, err := a.Executor.Build(t.Context(), a.parent, execute.Attributes{
		Timestamp: a.parent.Header.Time + 10, GasLimit: a.parent.Header.GasLimit, SlotNumber: 1000,
	}, types.Transactions{tx})
	if err != nil {
		t.Fatal(err)
	}
	if len(leftOut) > 0 {
		return nil, leftOut[0].Err
	}
	return built.Receipts[0], nil
}

// amsterdamMessages have state gas (EIP-8037), calldata gas, refunds and failing calls
// within.
func amsterdamMessages(sender common.Address) map[string]*execute.Message {
	fresh := common.Address{0: 0xf7, 19: 1}
	word := func(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }
	message := func(to *common.Address, value uint64, data []byte) *execute.Message {
		return &execute.Message{From: sender, To: to, Value: uint256.NewInt(value), Data: data}
	}
	wide := program.New()
	for slot := range 20 {
		wide.Sstore(slot, 1)
	}
	return map[string]*execute.Message{
		"transfer to an account that exists":   message(&sender, 1, nil),
		"transfer that creates an account":     message(&fresh, 1, nil),
		"write of a fresh slot":                message(&ingesttest.StoreContract, 0, append(word(9_999), word(5)...)),
		"write of a slot in use":               message(&ingesttest.StoreContract, 0, append(word(1), word(5)...)),
		"clearing of a slot":                   message(&ingesttest.StoreContract, 0, append(word(1), word(0)...)),
		"creation of a contract":               message(nil, 3, program.New().ReturnViaCodeCopy(make([]byte, 500)).Bytes()),
		"creation of a large contract":         message(nil, 0, program.New().Return(0, params.MaxCodeSize+1).Bytes()),
		"creation of a contract with 20 slots": message(nil, 0, wide.Return(0, 1).Bytes()),
		"creation that destroys itself":        message(nil, 9, program.New().Selfdestruct(fresh).Bytes()),
		"calldata above the floor":             message(&fresh, 0, make([]byte, 3_000)),
		"63/64 of the gas to a call":           message(nil, 0, demanding(ingesttest.StoreContract)),
	}
}

// demanding is creation code that calls a contract and reverts if that fails.
func demanding(contract common.Address) []byte {
	code := program.New().Call(nil, contract, 0, 0, 0, 0, 0).Bytes()
	success := len(code) + 8
	code = append(code, byte(vm.PUSH1), byte(success), byte(vm.JUMPI), byte(vm.PUSH1), 0, byte(vm.PUSH1), 0, byte(vm.REVERT))
	return append(append(code, byte(vm.JUMPDEST)), program.New().Return(0, 0).Bytes()...)
}

// TestAmsterdamEstimates: a transaction with the estimate as its gas limit succeeds in
// the next block, and one with less by the tolerance of estimates does not.
func TestAmsterdamEstimates(t *testing.T) {
	a := newAmsterdam(t)
	sender, _ := amsterdamSender(t)
	for name, message := range amsterdamMessages(sender) {
		t.Run(name, func(t *testing.T) {
			estimate, err := a.Executor.EstimateGas(t.Context(), a.at(), message, execute.CallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := a.included(t, message, estimate, nil)
			if err != nil || receipt.Status != types.ReceiptStatusSuccessful {
				t.Fatalf("estimate %d: receipt %+v (%v), want success", estimate, receipt, err)
			}
			less := estimate - estimate*2/100 // estimates are at most 1.5 % too high
			receipt, err = a.included(t, message, less, nil)
			if err == nil && receipt.Status == types.ReceiptStatusSuccessful {
				t.Errorf("estimate %d: %d suffices", estimate, less)
			}
		})
	}
}

// TestAmsterdamCalls: a call with the estimate as its gas succeeds, and with a fifth less
// fails where execution, not the price of the message itself, takes most of it.
func TestAmsterdamCalls(t *testing.T) {
	a := newAmsterdam(t)
	sender, _ := amsterdamSender(t)
	for name, message := range amsterdamMessages(sender) {
		t.Run(name, func(t *testing.T) {
			estimate, err := a.Executor.EstimateGas(t.Context(), a.at(), message, execute.CallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			call := *message
			call.Gas = &estimate
			if _, err := a.Executor.Call(t.Context(), a.at(), &call, execute.CallOptions{}); err != nil {
				t.Errorf("with %d gas: %v", estimate, err)
			}
			less := estimate * 4 / 5
			call.Gas = &less
			var failed *execute.CallError
			if _, err := a.Executor.Call(t.Context(), a.at(), &call, execute.CallOptions{}); !errors.As(err, &failed) {
				t.Errorf("with %d gas, of %d: %v, want an error of the call", less, estimate, err)
			}
		})
	}
}

// TestAmsterdamTracedCalls: code sees as much gas in a traced call as in a call, which may have more
// for execution than a transaction. Only calls that stand for a transaction have its cap.
func TestAmsterdamTracedCalls(t *testing.T) {
	a := newAmsterdam(t)
	sender, _ := amsterdamSender(t)
	gas := uint64(40_000_000)
	code := program.New().Op(vm.GAS).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	message := &execute.Message{From: sender, To: &common.Address{0: 0xf8}, Gas: &gas}
	options := execute.CallOptions{State: execute.StateOverrides{*message.To: {Code: &code}}}
	want, err := a.Executor.Call(t.Context(), a.at(), message, options)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	tracer := execute.Tracer{Stop: func(error) {}, Hooks: &tracing.Hooks{OnExit: func(_ int, output []byte, _ uint64, _ error, _ bool) { got = bytes.Clone(output) }}}
	if err := a.Executor.TraceCall(t.Context(), a.at(), message, options, tracer); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a traced call: gas %x (%v), want %x", got, err, want)
	}
	for _, c := range []struct {
		name        string
		transaction bool
		most, least uint64
	}{{"a call", false, gas, gas - 100_000}, {"a transaction", true, params.MaxTxGas, params.MaxTxGas - 100_000}} {
		options.Transaction = c.transaction
		err := a.Executor.TraceCalls(t.Context(), a.at(), options, func(call func(context.Context, *execute.Message, execute.Tracer) error) error {
			return call(t.Context(), message, tracer)
		})
		if left := new(big.Int).SetBytes(got).Uint64(); err != nil || left > c.most || left < c.least {
			t.Errorf("%s of several: gas %d (%v), want %d to %d", c.name, left, err, c.least, c.most)
		}
	}
}

// TestAmsterdamAccessLists: a transaction with the access list that is proposed for a
// message takes the gas that comes with the list.
func TestAmsterdamAccessLists(t *testing.T) {
	a := newAmsterdam(t)
	sender, _ := amsterdamSender(t)
	for name, message := range amsterdamMessages(sender) {
		t.Run(name, func(t *testing.T) {
			message := *message
			message.Nonce = &a.nonce // it decides where a contract is created
			accessed, err := a.Executor.AccessList(t.Context(), a.at(), &message, execute.CallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := a.included(t, &message, 55_000_000, accessed.List)
			if err != nil || receipt.Status != types.ReceiptStatusSuccessful {
				t.Fatalf("receipt %v (%v), want success", receipt, err)
			}
			if accessed.GasUsed != receipt.GasUsed {
				t.Errorf("gas %d with the list %v, the transaction took %d", accessed.GasUsed, accessed.List, receipt.GasUsed)
			}
		})
	}
}
