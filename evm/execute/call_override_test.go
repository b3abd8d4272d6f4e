package execute

import (
	"encoding/hex"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// slotsCode returns the first three slots and what the sender has.
func slotsCode() []byte {
	p := program.New()
	for slot := range 3 {
		p.Push(slot).Op(vm.SLOAD).Push(32 * slot).Op(vm.MSTORE)
	}
	return p.Op(vm.CALLER, vm.BALANCE).Push(96).Op(vm.MSTORE).Return(0, 128).Bytes()
}

func words(values ...uint64) (text string) {
	for _, value := range values {
		text += word(value).Hex()[2:]
	}
	return text
}

func TestStateOverrides(t *testing.T) {
	identity, sha := common.BytesToAddress([]byte{4}), common.BytesToAddress([]byte{2})
	slots := func(pairs ...uint64) map[common.Hash]common.Hash {
		set := make(map[common.Hash]common.Hash)
		for i := 0; i < len(pairs); i += 2 {
			set[word(pairs[i])] = word(pairs[i+1])
		}
		return set
	}
	echo := program.New().Op(vm.CALLDATASIZE).Push(0).Push(0).Op(vm.CALLDATACOPY, vm.CALLDATASIZE).Push(0).Op(vm.RETURN).Bytes()
	tests := []struct {
		name      string
		overrides StateOverrides
		message   Message
		want      string
		err       string
	}{
		{"none", nil, Message{To: &contract}, words(10, 11, 12, 1e9), ""},
		{"balance", StateOverrides{sender: {Balance: uint256.NewInt(3)}}, Message{To: &contract}, words(10, 11, 12, 3), ""},
		{"balance is spent", StateOverrides{sender: {Balance: uint256.NewInt(3)}}, Message{To: &contract, Value: uint256.NewInt(2)}, words(10, 11, 12, 1), ""},
		{"balance is not enough", StateOverrides{sender: {Balance: new(uint256.Int)}}, Message{To: &contract, Value: uint256.NewInt(2)}, "",
			"err: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000005e4DE2 have 0 want 2 (supplied gas 50000000)"},
		{"stateDiff changes what it names", StateOverrides{contract: {StateDiff: slots(1, 99)}}, Message{To: &contract}, words(10, 99, 12, 1e9), ""},
		{"stateDiff can clear", StateOverrides{contract: {StateDiff: slots(1, 0)}}, Message{To: &contract}, words(10, 0, 12, 1e9), ""},
		{"state is everything", StateOverrides{contract: {State: slots(1, 99)}}, Message{To: &contract}, words(0, 99, 0, 1e9), ""},
		{"an empty state is nothing", StateOverrides{contract: {State: slots()}}, Message{To: &contract}, words(0, 0, 0, 1e9), ""},
		{"state keeps code and balance", StateOverrides{contract: {State: slots(), Balance: uint256.NewInt(5)}}, Message{To: &contract}, words(0, 0, 0, 1e9), ""},
		{"both", StateOverrides{contract: {State: slots(), StateDiff: slots()}}, Message{To: &contract}, "",
			"account 0x000000000000000000000000000000000000c0DE has both 'state' and 'stateDiff'"},
		{"code", StateOverrides{contract: {Code: ptr(echo)}}, Message{To: &contract, Data: []byte{1, 2}}, "0102", ""},
		{"code where nobody is", StateOverrides{nobody: {Code: ptr(echo)}}, Message{To: &nobody, Data: []byte{1, 2}}, "0102", ""},
		{"no code", StateOverrides{contract: {Code: ptr([]byte{})}}, Message{To: &contract}, "", ""},
		{"nonce moves what is created", StateOverrides{sender: {Nonce: ptr[uint64](7)}}, Message{Data: returning(vm.ADDRESS)},
			common.BytesToHash(crypto.CreateAddress(sender, 7).Bytes()).Hex()[2:], ""},
		{"a precompile", StateOverrides{nobody: {Nonce: ptr[uint64](1)}}, Message{To: &identity, Data: []byte{1}}, "01", ""},
		{"a precompile that moved", StateOverrides{identity: {MovePrecompileTo: &nobody}}, Message{To: &nobody, Data: []byte{1}}, "01", ""},
		{"where a precompile was", StateOverrides{identity: {MovePrecompileTo: &nobody}}, Message{To: &identity, Data: []byte{1}}, "", ""},
		{"code where a precompile was", StateOverrides{sha: {MovePrecompileTo: &nobody, Code: ptr(echo)}}, Message{To: &sha, Data: []byte{1}}, "01", ""},
		{"an override ends a precompile", StateOverrides{sha: {Code: ptr(echo)}}, Message{To: &sha, Data: []byte{1}}, "01", ""},
		{"moving what is none", StateOverrides{contract: {MovePrecompileTo: &nobody}}, Message{To: &contract}, "",
			"account 0x000000000000000000000000000000000000c0DE is not a precompile"},
		{"moving to where another override is", StateOverrides{identity: {MovePrecompileTo: &nobody}, nobody: {}}, Message{To: &contract}, "",
			"account 0x000000000000000000000000000000000000b0D1 is already overridden"},
	}
	e := newCaller(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(sender, 1e9, nil)
			w.put(contract, 0, slotsCode(), word(10), word(11), word(12))
			test.message.From = sender
			output, err := e.Call(t.Context(), w.at(), &test.message, CallOptions{State: test.overrides})
			if got := describe(err); got != test.err {
				t.Errorf("error:\ngot  %q\nwant %q", got, test.err)
			}
			if got := hex.EncodeToString(output); got != test.want {
				t.Errorf("output:\ngot  %s\nwant %s", got, test.want)
			}
		})
	}
}

// What a call overrides or changes is gone after it.
func TestOverridesLeaveNoTrace(t *testing.T) {
	w := newWorld()
	w.put(sender, 1e9, nil)
	w.put(contract, 0, program.New().Push(0).Op(vm.SLOAD).Push(1).Op(vm.ADD, vm.DUP1).Push(0).Op(vm.SSTORE).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes(), word(5))
	e := newCaller(t)
	for _, test := range []struct {
		overrides StateOverrides
		want      uint64
	}{
		{nil, 6}, {StateOverrides{contract: {StateDiff: map[common.Hash]common.Hash{{}: word(20)}}}, 21}, {nil, 6},
	} {
		output, err := e.Call(t.Context(), w.at(), &Message{To: &contract}, CallOptions{State: test.overrides})
		if err != nil || common.BytesToHash(output) != word(test.want) {
			t.Errorf("got %x, %v, want %d", output, err, test.want)
		}
	}
}
