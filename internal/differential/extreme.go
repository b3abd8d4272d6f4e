package differential

import (
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// extremeQuestions are calls whose members and overrides have the least and the greatest values, none, or those
// of other types. They are not among those of questions and rareQuestions, for the same reason as the latter.
func extremeQuestions(g *generator, each int) (all []question) {
	for _, k := range extremeKinds() {
		for range k.weight * each {
			all = append(all, question{k.method, k.params(g)})
		}
	}
	return all
}

func extremeKinds() []kind {
	return []kind{
		{"eth_call", 8, func(g *generator) []any {
			state, call := g.extremeCall()
			return g.cut([]any{withoutLoneBlobFee(call), g.block(), state, g.extremeBlock()})
		}},
		{"eth_estimateGas", 6, func(g *generator) []any {
			state, call := g.extremeCall()
			return g.cut([]any{withoutLoneBlobFee(call), g.block(), withoutPrecompiles(state), g.extremeBlock()})
		}},
		{"eth_createAccessList", 4, func(g *generator) []any {
			state, call := g.extremeCall()
			if call["maxFeePerGas"] == nil || call["maxPriorityFeePerGas"] == nil { // geth 1.17.8 adds the other
				delete(call, "maxFeePerGas")
				delete(call, "maxPriorityFeePerGas")
			}
			return g.cut([]any{withoutLoneBlobFee(call), g.block(), withoutPrecompiles(state)})
		}},
		{"debug_traceCall", 8, (*generator).extremeTrace},
		{"eth_simulateV1", 8, (*generator).extremeSimulation},
	}
}

// withoutLoneBlobFee leaves out a fee for blobs of a call without blobs, which only geth 1.17.8 ignores.
func withoutLoneBlobFee(call object) object {
	if hashes, ok := call["blobVersionedHashes"].([]common.Hash); !ok || len(hashes) == 0 {
		delete(call, "maxFeePerBlobGas")
	}
	return call
}

// withoutPrecompiles leaves out overrides of precompiles, which run all the same in some methods of geth.
func withoutPrecompiles(state object) object {
	for address, account := range state {
		if common.HexToAddress(address).Big().IsUint64() {
			delete(state, address)
		} else {
			delete(account.(object), "movePrecompileToAddress")
		}
	}
	return state
}

// cut leaves out the last parameters.
func (g *generator) cut(params []any) []any {
	if g.chance(60) {
		return params
	}
	return params[:2+g.r.IntN(len(params)-1)]
}

// power returns a quantity near a power of two, rarely one of too many bits.
func (g *generator) power(bits uint) any {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	if g.chance(1) {
		return (*hexutil.Big)(n)
	}
	if g.chance(80) {
		n.Lsh(big.NewInt(1), g.r.UintN(bits))
	}
	if n.BitLen() > int(bits) || g.chance(50) {
		n.Sub(n, big.NewInt(1))
	}
	return (*hexutil.Big)(n)
}

func (g *generator) word() any     { return g.power(256) }
func (g *generator) number64() any { return g.power(64) }

// strange returns a value that is not of the type that is wanted, or in another notation.
func (g *generator) strange() any {
	return pick(g, []any{nil, "0x", "0x0", "0x00", "0", 0, 7, "7", true, "latest", []any{}, []any{"0x1"}, object{}, object{"0x1": "0x1"}, "0xzz", "0X1", "-0x1", " 0x1", "0x1 ",
		"0x" + strings.Repeat("0", 64), "0x" + strings.Repeat("0", 63) + "1", "0x" + strings.Repeat("f", 65), 1.5, 1e30})
}

// value returns usually what is given, rarely something strange.
func (g *generator) value(usual any) any {
	if g.chance(1) {
		return g.strange()
	}
	return usual
}

var (
	// cascade calls the account in its first word of data with all gas, and returns what that returns.
	cascade = hexutil.Bytes{byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.SELFBALANCE), byte(vm.PUSH0), byte(vm.CALLDATALOAD), byte(vm.GAS),
		byte(vm.CALL), byte(vm.PUSH0), byte(vm.MSTORE), byte(vm.RETURNDATASIZE), byte(vm.PUSH1), 32, byte(vm.MSTORE), byte(vm.PUSH1), 64, byte(vm.PUSH0), byte(vm.RETURN)}
	// creator creates a contract at an address that depends on its nonce, and then one that does not.
	creator = hexutil.Bytes{byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.CREATE), byte(vm.PUSH0), byte(vm.MSTORE),
		byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.CREATE2), byte(vm.PUSH1), 32, byte(vm.MSTORE), byte(vm.PUSH1), 64, byte(vm.PUSH0), byte(vm.RETURN)}
	// writer increments slot 0, clears slot 1, and returns what slot 0 was.
	writer = hexutil.Bytes{byte(vm.PUSH0), byte(vm.SLOAD), byte(vm.DUP1), byte(vm.PUSH0), byte(vm.MSTORE), byte(vm.PUSH1), 1, byte(vm.ADD), byte(vm.PUSH0), byte(vm.SSTORE),
		byte(vm.PUSH0), byte(vm.PUSH1), 1, byte(vm.SSTORE), byte(vm.PUSH1), 32, byte(vm.PUSH0), byte(vm.RETURN)}
	// destroyer destroys itself in favor of the account in its first word of data.
	destroyer = hexutil.Bytes{byte(vm.PUSH0), byte(vm.CALLDATALOAD), byte(vm.SELFDESTRUCT)}
	// deep has the instructions of EIP-8024 and EIP-7843, which are invalid before Amsterdam.
	deep = hexutil.Bytes{byte(vm.PUSH1), 3, byte(vm.PUSH1), 2, byte(vm.PUSH1), 1, byte(vm.EXCHANGE), 142, byte(vm.SLOTNUM), byte(vm.PUSH0), byte(vm.MSTORE), byte(vm.PUSH1), 32, byte(vm.MSTORE),
		byte(vm.PUSH1), 64, byte(vm.MSTORE), byte(vm.PUSH1), 96, byte(vm.MSTORE), byte(vm.PUSH1), 128, byte(vm.PUSH0), byte(vm.RETURN)}
)

// code returns code that does something with the state, a delegation, or no valid code.
func (g *generator) code(others []common.Address) hexutil.Bytes {
	switch g.r.IntN(12) {
	case 0, 1:
		return environment()
	case 2:
		return cascade
	case 3:
		return creator
	case 4:
		return writer
	case 5:
		return destroyer
	case 6:
		return deep
	case 7:
		return hexutil.Bytes{}
	case 8:
		return pick(g, []hexutil.Bytes{{0xef}, {0xef, 0, 1}, {0xfe}, {byte(vm.PUSH32)}, make(hexutil.Bytes, 24577), make(hexutil.Bytes, 65537)})
	default:
		return types.AddressToDelegation(pick(g, append(others, common.Address{19: 1}, common.Address{19: 4}, common.Address{}, g.address())))
	}
}

// extremeCall returns a state override, and a call to an account in it or from one.
func (g *generator) extremeCall() (state, call object) {
	accounts := []common.Address{g.address(), pick(g, g.c.Accounts), pick(g, g.c.Emitters), {0xaa}, {0xbb, 1}}
	state = object{}
	for _, address := range accounts[g.r.IntN(3):] {
		account := object{}
		set := func(percent int, name string, value func() any) {
			if g.chance(percent) {
				account[name] = g.value(value())
			}
		}
		set(40, "balance", g.word)
		set(25, "nonce", func() any {
			return pick(g, []string{"0x0", "0x1", "0x7fffffffffffffff", "0xfffffffffffffffe", "0xffffffffffffffff"})
		})
		set(50, "code", func() any { return g.code(accounts) })
		set(20, pick(g, []string{"state", "stateDiff"}), func() any { return g.extremeSlots() })
		set(2, "movePrecompileToAddress", func() any { return g.address() })
		state[address.Hex()] = account
	}
	call = object{"to": pick(g, accounts), "from": pick(g, accounts), "data": hexutil.Bytes(common.LeftPadBytes(pick(g, accounts).Bytes(), 32))}
	if g.chance(10) {
		delete(call, "to")
		call["data"] = g.code(accounts)
	}
	g.extremeMembers(call, accounts)
	return state, call
}

func (g *generator) extremeSlots() object {
	slots := object{}
	for range g.r.IntN(4) {
		slots[pick(g, []string{common.Hash{}.Hex(), common.Hash{31: 1}.Hex(), pick(g, g.c.Slots).Key.Hex()})] = pick(g, []string{common.Hash{}.Hex(), common.MaxHash.Hex(), g.hash().Hex()})
	}
	if g.chance(3) {
		slots[pick(g, []string{"0x0", "0x1", "", "0x" + strings.Repeat("0", 63), "0X" + strings.Repeat("0", 64)})] = common.Hash{}
	}
	return slots
}

// extremeMembers adds members of a call.
func (g *generator) extremeMembers(call object, accounts []common.Address) {
	set := func(percent int, name string, value func() any) {
		if g.chance(percent) {
			call[name] = g.value(value())
		}
	}
	set(15, "value", g.word)
	set(30, "gas", func() any {
		return pick(g, []any{g.number64(), quantity(21_000), quantity(53_000 + g.r.Uint64N(2_000_000)), quantity(1_000_000)})
	})
	switch g.r.IntN(4) {
	case 0:
		set(20, "gasPrice", g.word)
	case 1:
		set(30, "maxFeePerGas", g.word)
		set(20, "maxPriorityFeePerGas", g.word)
	}
	set(10, "nonce", g.number64)
	set(2, "chainId", g.word)
	set(6, "maxFeePerBlobGas", g.word)
	set(6, "blobVersionedHashes", func() any {
		return pick(g, []any{[]any{}, []common.Hash{{1}}, []common.Hash{{1}, {1}}, []common.Hash{{}}, []any{nil}, []any{"0x01"}})
	})
	set(6, "authorizationList", func() any {
		return pick(g, []any{[]any{}, []any{nil}, []any{object{}}, []any{object{"chainId": g.word(), "address": pick(g, accounts), "nonce": g.number64(), "yParity": quantity(g.r.Uint64N(256)), "r": g.word(), "s": g.word()}}})
	})
	set(6, "accessList", func() any {
		return pick(g, []any{[]any{}, []any{nil}, []any{object{}}, []any{object{"address": pick(g, accounts)}}, []any{object{"address": pick(g, accounts), "storageKeys": nil}},
			[]any{object{"address": pick(g, accounts), "storageKeys": []common.Hash{{}, common.MaxHash}}}, []any{object{"storageKeys": []any{}}}})
	})
}

// extremeBlock returns block overrides.
func (g *generator) extremeBlock() object {
	o := object{}
	set := func(percent int, name string, value func() any) {
		if g.chance(percent) {
			o[name] = g.value(value())
		}
	}
	set(20, "number", g.number64)
	set(20, "time", g.number64)
	set(20, "gasLimit", g.number64)
	set(20, "baseFeePerGas", g.word)
	set(20, "blobBaseFee", g.word)
	set(5, "difficulty", g.word)
	set(10, "prevRandao", func() any { return common.MaxHash })
	set(10, "feeRecipient", func() any { return g.address() })
	return o
}

// extremeTrace traces a call with few instructions.
func (g *generator) extremeTrace() []any {
	state, call := g.extremeCall()
	call["gas"] = quantity(20_000 + g.r.Uint64N(200_000))
	config := object{"stateOverrides": state}
	if g.chance(50) {
		config["blockOverrides"] = g.extremeBlock()
	}
	if g.chance(80) {
		config["tracer"] = pick(g, []string{"callTracer", "prestateTracer", "prestateTracer", "flatCallTracer", "erc7562Tracer"})
		config["tracerConfig"] = pick(g, []object{{"withLog": true}, {"diffMode": true}, {"includeEmpty": true}, {}})
	}
	return []any{call, g.block(), config}
}

// extremeSimulation simulates blocks whose numbers and times follow each other.
func (g *generator) extremeSimulation() []any {
	base := g.number()
	whole := g.chance(40)
	blocks := []object{}
	for range 1 + g.r.IntN(3) {
		state, call := g.extremeCall()
		calls := []object{call}
		for range g.r.IntN(3) {
			_, more := g.extremeCall()
			calls = append(calls, more)
		}
		for _, call := range calls {
			if whole { // geth shows a chain ID that no transaction has
				delete(call, "gasPrice")
			}
		}
		block := object{"calls": calls, "stateOverrides": state}
		if g.chance(60) {
			overrides := g.extremeBlock()
			delete(overrides, "difficulty") // which geth 1.17.8 ignores after the merge
			for _, name := range []string{"number", "time"} {
				if !g.chance(20) {
					delete(overrides, name)
				}
			}
			block["blockOverrides"] = overrides
		}
		blocks = append(blocks, block)
	}
	return []any{object{"blockStateCalls": blocks, "validation": g.chance(20), "traceTransfers": g.chance(40), "returnFullTransactions": whole}, quantity(base)}
}
