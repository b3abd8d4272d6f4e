package execute

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/gasestimator"
	"github.com/holiman/uint256"
)

// gasCases are messages whose gas is estimated, each in a world of its own.
func gasCases() []gasCase {
	full := uint256.NewInt(100)
	// clears the three slots, for which most of the gas comes back
	clearing := program.New().Sstore(0, 0).Sstore(1, 0).Sstore(2, 0).Bytes()
	// goes on only with more gas than it uses
	greedy := program.New().Push(500_000).Op(vm.GAS, vm.GT).Push(14).Op(vm.JUMPI).Push(0).Push(0).Op(vm.REVERT, vm.JUMPDEST).Bytes()
	nested := program.New().Call(nil, nobody, 0, 0, 0, 0, 0).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	return []gasCase{
		{"transfer", nil, Message{To: &nobody, Value: uint256.NewInt(1)}},
		{"transfer with an access list", nil, Message{To: &nobody, AccessList: types.AccessList{{Address: contract, StorageKeys: []common.Hash{{1}}}}}},
		{"data for nobody", nil, Message{To: &nobody, Data: make([]byte, 100)}},
		{"writes a slot", program.New().Sstore(9, 9).Bytes(), Message{To: &contract}},
		{"clears slots", clearing, Message{To: &contract}},
		{"wants more gas than it uses", greedy, Message{To: &contract}},
		{"a call in a call", nested, Message{To: &contract}},
		{"creation", nil, Message{Data: program.New().Return(0, 100).Bytes()}},
		{"reads many slots", looped(300), Message{To: &contract}},
		{"reverts", ending(errorWords), Message{To: &contract}},
		{"fails", []byte{byte(vm.INVALID)}, Message{To: &contract}},
		{"never ends", looping(func(*program.Program) {}), Message{To: &contract}},
		{"with too little gas asked for", looped(300), Message{To: &contract, Gas: ptr[uint64](50_000)}},
		{"with a price", looped(10), Message{To: &contract, GasPrice: full}},
		{"with a price that pays for too little", looped(300), Message{To: &contract, GasPrice: uint256.NewInt(5000)}},
		{"with value that is not there", nil, Message{To: &contract, GasPrice: full, Value: uint256.NewInt(1e10)}},
		{"with value that is not there and no price", nil, Message{To: &contract, Value: uint256.NewInt(1e10)}},
		{"with blobs that cannot be paid", nil, Message{To: &contract, GasPrice: full, BlobHashes: []common.Hash{{1}}, MaxFeePerBlobGas: uint256.NewInt(1e9)}},
		{"a price below the base fee", nil, Message{To: &contract, GasPrice: uint256.NewInt(1)}},
	}
}

type gasCase struct {
	name    string
	code    []byte
	message Message
}

// looped is code that reads n different slots.
func looped(n int) []byte {
	p := program.New().Push(n)
	_, start := p.Jumpdest()
	return p.Op(vm.DUP1, vm.SLOAD, vm.POP).Push(1).Op(vm.SWAP1, vm.SUB, vm.DUP1).Push(start).Op(vm.JUMPI).Bytes()
}

func (c *gasCase) world() *world {
	w := newWorld()
	w.put(sender, 1e9, nil)
	w.put(contract, 0, c.code, word(1), word(2), word(3))
	c.message.From = sender
	return w
}

// TestEstimateGas expects what go-ethereum's estimator says, error for error.
func TestEstimateGas(t *testing.T) {
	e := newCaller(t)
	for _, test := range gasCases() {
		t.Run(test.name, func(t *testing.T) {
			at := test.world().at()
			got, err := e.EstimateGas(t.Context(), at, &test.message, CallOptions{})
			want, wantErr := referenceEstimate(t, e, at, &test.message)
			if got != want || describe(err) != describe(wantErr) {
				t.Errorf("got %d %q, go-ethereum says %d %q", got, describe(err), want, describe(wantErr))
			}
		})
	}
}

// referenceEstimate asks go-ethereum's estimator.
func referenceEstimate(t *testing.T, e *Executor, at At, message *Message) (uint64, error) {
	db := newDatabase(t.Context(), Parent{State: at.State}, true)
	statedb, err := state.New(at.Header.Root, db)
	if err != nil {
		t.Fatal(err)
	}
	s := e.newSimulation(t.Context(), at)
	if err := s.prepare(CallOptions{}); err != nil {
		t.Fatal(err)
	}
	msg, err := s.message(message)
	if err != nil {
		t.Fatal(err)
	}
	if message.Gas == nil {
		msg.GasLimit = 0
	}
	gas, payload, err := gasestimator.Estimate(t.Context(), msg, &gasestimator.Options{
		Config: e.config, Chain: estimatorChain{&chainReader{config: e.config, engine: e.engine}},
		Header: at.Header, State: statedb, ErrorRatio: estimateTolerance,
	}, s.gasCap)
	switch {
	case errors.Is(err, vm.ErrExecutionReverted):
		return 0, &RevertError{Data: payload}
	case err != nil:
		return 0, &CallError{err}
	}
	return gas, nil
}

type estimatorChain struct{ consensus.ChainHeaderReader }

func (c estimatorChain) Engine() consensus.Engine { return c.ChainHeaderReader.(*chainReader).engine }

// A limit that is estimated is enough, and hardly more than what is.
func TestEstimateIsEnough(t *testing.T) {
	e := newCaller(t)
	for _, test := range gasCases() {
		t.Run(test.name, func(t *testing.T) {
			at := test.world().at()
			gas, err := e.EstimateGas(t.Context(), at, &test.message, CallOptions{})
			if err != nil {
				t.Skip("no limit is enough: ", err)
			}
			test.message.Gas = &gas
			if _, err := e.Call(t.Context(), at, &test.message, CallOptions{}); err != nil {
				t.Errorf("not enough: %v", err)
			}
			less := uint64(float64(gas)*(1-estimateTolerance)) - 1
			test.message.Gas = &less
			if _, err := e.Call(t.Context(), at, &test.message, CallOptions{}); err == nil {
				t.Errorf("%d would be enough, got %d", less, gas)
			}
		})
	}
}

func TestAccessList(t *testing.T) {
	readsOther := program.New().Push(nobody).Op(vm.BALANCE, vm.POP).Push(5).Op(vm.SLOAD, vm.POP).
		Push(sender).Op(vm.BALANCE, vm.POP).Push(4).Op(vm.EXTCODESIZE).Bytes()
	tests := []struct {
		name    string
		code    []byte
		message Message
		want    types.AccessList
		failed  string
		err     string
	}{
		{"transfer", nil, Message{To: &nobody}, types.AccessList{}, "", ""},
		{"slots and accounts", readsOther, Message{To: &contract},
			types.AccessList{{Address: nobody, StorageKeys: []common.Hash{}}, {Address: contract, StorageKeys: []common.Hash{word(5)}}}, "", ""},
		{"a creation", program.New().Bytes(), Message{Data: program.New().Push(5).Op(vm.SLOAD).Push(nobody).Op(vm.BALANCE).Bytes()},
			types.AccessList{{Address: nobody, StorageKeys: []common.Hash{}}, {Address: crypto.CreateAddress(sender, 0), StorageKeys: []common.Hash{word(5)}}}, "", ""},
		{"one that reverts", append(program.New().Push(5).Op(vm.SLOAD, vm.POP).Bytes(), ending("01")...), Message{To: &contract},
			types.AccessList{{Address: contract, StorageKeys: []common.Hash{word(5)}}}, "execution reverted", ""},
		{"one that has no money", nil, Message{To: &contract, Value: uint256.NewInt(2e9)}, nil, "",
			"failed to apply transaction: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000005e4DE2 have 1000000000 want 2000000000"},
		{"a price of zero", nil, Message{To: &contract, GasPrice: new(uint256.Int)}, nil, "", errZeroGasPrice.Error()},
		{"a tip above the cap", nil, Message{To: &contract, MaxFeePerGas: uint256.NewInt(8), MaxPriorityFeePerGas: uint256.NewInt(9)}, nil, "",
			"maxFeePerGas (0x8) < maxPriorityFeePerGas (0x9)"},
	}
	e := newCaller(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(sender, 1e9, nil)
			w.put(contract, 0, test.code)
			test.message.From = sender
			accessed, err := e.AccessList(t.Context(), w.at(), &test.message, CallOptions{})
			if got := describe(err); got != test.err {
				t.Fatalf("error: got %q, want %q", got, test.err)
			}
			if err != nil {
				return
			}
			if !equalLists(accessed.List, test.want) {
				t.Errorf("got %v, want %v", accessed.List, test.want)
			}
			if got := describeResult(accessed.Err); got != test.failed {
				t.Errorf("failed with %q, want %q", got, test.failed)
			}
			message := test.message
			message.AccessList = accessed.List
			again, err := e.AccessList(t.Context(), w.at(), &message, CallOptions{})
			if err != nil || again.GasUsed != accessed.GasUsed {
				t.Errorf("with its own list: %v, %v", again, err)
			}
		})
	}
}

func describeResult(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func equalLists(a, b types.AccessList) bool {
	if len(a) != len(b) || a.StorageKeys() != b.StorageKeys() {
		return false
	}
	for i := range a {
		if a[i].Address != b[i].Address {
			return false
		}
		for j := range a[i].StorageKeys {
			if a[i].StorageKeys[j] != b[i].StorageKeys[j] {
				return false
			}
		}
	}
	return true
}
