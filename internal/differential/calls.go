package differential

import (
	"encoding/binary"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
)

// environment returns code that returns the values of its environment, one word each.
func environment() hexutil.Bytes {
	var code []byte
	words := 0
	store := func(ops ...byte) {
		code = append(append(code, ops...), byte(vm.PUSH2))
		code = binary.BigEndian.AppendUint16(code, uint16(32*words))
		code = append(code, byte(vm.MSTORE))
		words++
	}
	for _, op := range []vm.OpCode{vm.NUMBER, vm.TIMESTAMP, vm.COINBASE, vm.PREVRANDAO, vm.GASLIMIT, vm.BASEFEE, vm.BLOBBASEFEE,
		vm.CHAINID, vm.GASPRICE, vm.ORIGIN, vm.CALLER, vm.CALLVALUE, vm.SELFBALANCE, vm.ADDRESS, vm.CALLDATASIZE, vm.GAS} {
		store(byte(op))
	}
	for back := byte(1); back < 4; back++ {
		store(byte(vm.PUSH1), back, byte(vm.NUMBER), byte(vm.SUB), byte(vm.BLOCKHASH))
	}
	store(byte(vm.PUSH1), 0, byte(vm.SLOAD))
	store(byte(vm.PUSH1), 0, byte(vm.CALLDATALOAD), byte(vm.BALANCE))
	store(byte(vm.PUSH1), 0, byte(vm.BLOBHASH))
	code = append(code, byte(vm.PUSH2))
	code = binary.BigEndian.AppendUint16(code, uint16(32*words))
	return append(code, byte(vm.PUSH1), 0, byte(vm.RETURN))
}

func selector(signature string, words ...[]byte) hexutil.Bytes {
	data := crypto.Keccak256([]byte(signature))[:4]
	for _, w := range words {
		data = append(data, common.LeftPadBytes(w, 32)...)
	}
	return data
}

// call returns a call object: a view, a transaction of the chain, a creation, code that reads its
// environment, or a call that must fail.
func (g *generator) call() object {
	who := pick(g, g.c.Accounts)
	var call object
	switch g.r.IntN(10) {
	case 0, 1, 2:
		call = object{"to": pick(g, g.c.Emitters), "data": selector("balanceOf(address)", who[:])}
	case 3:
		call = object{"to": pick(g, g.c.Emitters), "data": selector(pick(g, []string{"totalSupply()", "name()", "symbol()", "decimals()", "nothingOfTheKind()"}))}
	case 4:
		call = object{"data": environment(), "from": who}
	case 5:
		call = object{"to": who, "value": quantity(g.r.Uint64N(1e18)), "from": pick(g, g.c.Accounts)}
	case 6:
		if len(g.c.Reverted) > 0 {
			call = replayed(g, pick(g, g.c.Reverted))
			break
		}
		fallthrough
	default:
		call = replayed(g, g.r.IntN(len(g.c.Txs)))
	}
	g.decorate(call)
	return call
}

// replayed returns a transaction of the chain as a call.
func replayed(g *generator, i int) object {
	tx := g.c.Txs[i]
	call := object{"from": tx.From, "input": hexutil.Bytes(tx.Data()), "value": (*hexutil.Big)(tx.Value())}
	if tx.To() != nil {
		call["to"] = tx.To()
	}
	if g.chance(30) {
		call["gas"] = quantity(tx.Gas())
	}
	if al := tx.AccessList(); len(al) > 0 && g.chance(50) {
		call["accessList"] = al
	}
	return call
}

// decorate sometimes adds gas and fees: sufficient, insufficient or contradictory.
func (g *generator) decorate(call object) {
	switch g.r.IntN(16) {
	case 0:
		call["gas"] = quantity(g.r.Uint64N(60000))
	case 1:
		call["gas"] = quantity(1_000_000 + g.r.Uint64N(1e6))
	case 2:
		call["gasPrice"] = quantity(g.r.Uint64N(5e9))
	case 3:
		call["maxFeePerGas"] = quantity(g.r.Uint64N(5e9))
		call["maxPriorityFeePerGas"] = quantity(g.r.Uint64N(3e9))
	case 4:
		call["gasPrice"], call["maxFeePerGas"] = "0x1", "0x1"
	case 5:
		call["value"] = (*hexutil.Big)(new(big.Int).Lsh(big.NewInt(1), 200))
	case 6:
		call["nonce"] = quantity(g.r.Uint64N(100))
	case 7:
		call["chainId"] = quantity(g.r.Uint64N(2))
	case 8:
		call["blobVersionedHashes"] = []string{"0x01" + g.hash().Hex()[4:]}
	}
}

// stateOverride returns a state override, and one of the addresses in it.
func (g *generator) stateOverride() (changes object, address string) {
	changes = object{}
	for range 1 + g.r.IntN(2) {
		change := object{}
		if g.chance(50) {
			change["balance"] = quantity(g.r.Uint64N(1e18))
		}
		if g.chance(30) {
			change["nonce"] = quantity(g.r.Uint64N(1000))
		}
		if g.chance(40) {
			change["code"] = environment()
		}
		if g.chance(40) {
			member := pick(g, []string{"state", "stateDiff"})
			change[member] = object{common.Hash{}.Hex(): g.hash().Hex(), pick(g, g.c.Slots).Key.Hex(): g.hash().Hex()}
		}
		address = g.address().Hex()
		changes[address] = change
	}
	return changes, address
}

// blockOverride returns a block override.
func (g *generator) blockOverride() object {
	o := object{}
	for _, field := range []string{"number", "time", "gasLimit", "baseFeePerGas", "blobBaseFee"} {
		if g.chance(30) {
			o[field] = quantity(1 + g.r.Uint64N(1<<40))
		}
	}
	if g.chance(30) {
		o["feeRecipient"] = pick(g, g.c.Accounts)
	}
	if g.chance(30) {
		o["prevRandao"] = g.hash()
	}
	return o
}

// overriddenCall returns the parameters of a call that reads overridden values.
func (g *generator) overriddenCall() []any {
	state, address := g.stateOverride()
	call := g.call()
	if g.chance(60) {
		call["to"] = address
	}
	if g.chance(50) {
		return []any{call, g.block(), state}
	}
	return []any{call, g.block(), state, g.blockOverride()}
}

// simulation returns the parameters of a simulation of some blocks, whose calls are transactions of
// the chain. All blocks change the state, so the hashes of the answer show its roots.
func (g *generator) simulation() []any {
	blocks := []object{}
	for range 1 + g.r.IntN(3) {
		calls := []object{}
		for range g.r.IntN(4) {
			calls = append(calls, replayed(g, g.r.IntN(len(g.c.Txs))))
		}
		block := object{"calls": calls}
		if g.chance(40) {
			block["stateOverrides"], _ = g.stateOverride()
		}
		blocks = append(blocks, block)
	}
	return []any{object{"blockStateCalls": blocks, "traceTransfers": g.chance(50), "returnFullTransactions": g.chance(20)}, g.blockNumber()}
}
