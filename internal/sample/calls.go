package sample

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
)

// balanceOf is the selector of balanceOf(address).
func balanceOf() []byte { return crypto.Keccak256([]byte("balanceOf(address)"))[:4] }

// BalanceOf returns the input of a call that asks a token for an account's balance.
func BalanceOf(holder common.Address) hexutil.Bytes {
	return append(balanceOf(), common.LeftPadBytes(holder[:], 32)...)
}

// Balance names an account and a token.
type Balance struct{ Token, Holder common.Address }

// SumBalances returns creation code that asks for each balance and returns the sum. The
// accounts are operands of its push instructions.
func SumBalances(asked []Balance) []byte {
	push := func(code []byte, data ...byte) []byte {
		return append(append(code, byte(vm.PUSH1)+byte(len(data)-1)), data...)
	}
	selector := binary.BigEndian.Uint32(balanceOf())
	code := push(nil, binary.BigEndian.AppendUint32(nil, selector)...)
	code = push(code, 0)
	code = append(code, byte(vm.MSTORE)) // the selector is at 28
	code = push(code, 0)                 // the sum, on the stack
	for _, b := range asked {
		code = push(code, b.Holder[:]...)
		code = append(push(code, 32), byte(vm.MSTORE))
		for _, argument := range [][]byte{{32}, {64}, {36}, {28}, b.Token[:]} { // output size and place, input size and place
			code = push(code, argument...)
		}
		code = append(code, byte(vm.GAS), byte(vm.STATICCALL), byte(vm.POP))
		code = append(push(code, 64), byte(vm.MLOAD), byte(vm.ADD))
	}
	code = append(push(code, 0), byte(vm.MSTORE))
	return append(push(push(code, 32), 0), byte(vm.RETURN))
}
