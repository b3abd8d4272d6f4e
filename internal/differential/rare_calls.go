package differential

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// rareCalls are calls with blobs, authorizations and overrides.
func rareCalls() []kind {
	return []kind{
		{"eth_call", 4, func(g *generator) []any { return []any{g.typedCall(), g.form()} }},
		{"eth_call", 2, (*generator).movedCall},
		{"eth_estimateGas", 3, func(g *generator) []any { return []any{g.typedCall(), g.block()} }},
		{"eth_estimateGas", 3, (*generator).overriddenEstimate},
		{"eth_createAccessList", 2, func(g *generator) []any { return []any{g.typedCall(), g.block()} }},
		{"eth_createAccessList", 2, (*generator).overriddenList},
		{"eth_fillTransaction", 2, func(g *generator) []any { return []any{g.typedCall()} }},
		{"eth_simulateV1", 6, (*generator).rareSimulation},
	}
}

// typedCall returns a transaction of the chain, or code that reads its environment, as a call of
// one of the types of transactions.
func (g *generator) typedCall() object {
	call := replayed(g, g.r.IntN(len(g.c.Txs)))
	if g.chance(30) {
		call = object{"data": environment(), "from": pick(g, g.c.Accounts)}
	}
	switch g.r.IntN(8) {
	case 0, 1:
		g.addBlobs(call)
	case 2, 3:
		g.addAuthorizations(call)
	case 4:
		s := pick(g, g.c.Slots)
		call["accessList"] = types.AccessList{{Address: s.Address, StorageKeys: []common.Hash{s.Key, s.Key}}, {Address: g.address(), StorageKeys: []common.Hash{}}}
	case 5:
		call["maxFeePerGas"] = quantity(1e11)
		call["maxPriorityFeePerGas"] = quantity(g.r.Uint64N(1.05e11))
	case 6:
		call["data"], call["input"] = "0x1234", pick(g, []string{"0x1234", "0x12", "0x"})
	case 7:
		call["type"], call["unknown"], call["value"] = "0x2", "0x", nil
	}
	return call
}

// addBlobs gives a call hashes of blobs, sometimes of an unknown version, too many or none.
func (g *generator) addBlobs(call object) {
	hashes := []common.Hash{}
	for range pick(g, []int{0, 1, 1, 1, 2, 2, 3, 6, 7, 10}) {
		hash := g.hash()
		hash[0] = 1
		if g.chance(2) {
			hash[0] = 2
		}
		hashes = append(hashes, hash)
	}
	call["blobVersionedHashes"] = hashes
	if g.chance(95) {
		call["to"] = g.address()
	}
	if len(hashes) > 0 && g.chance(60) {
		call["maxFeePerBlobGas"] = quantity(g.r.Uint64N(1e9))
	}
}

// addAuthorizations gives a call authorizations of new accounts, and mostly calls the first one.
func (g *generator) addAuthorizations(call object) {
	all := []types.SetCodeAuthorization{}
	if g.chance(90) {
		call["to"] = g.address()
	}
	for i := range min(3, g.r.IntN(10)) {
		key, err := crypto.ToECDSA(g.hash().Bytes())
		if err != nil {
			continue // the number is not below the order of the curve
		}
		delegation := types.SetCodeAuthorization{ChainID: *uint256.NewInt(pick(g, []uint64{0, 0, 0, 1, 7})), Address: pick(g, g.c.Emitters)}
		if g.chance(10) {
			delegation.Nonce = 1 + g.r.Uint64N(3)
		}
		signed, err := types.SignSetCode(key, delegation)
		if err != nil {
			panic(err)
		}
		if g.chance(10) {
			signed.V ^= 1
		}
		all = append(all, signed)
		if i == 0 && g.chance(70) {
			call["to"] = crypto.PubkeyToAddress(key.PublicKey)
		}
	}
	call["authorizationList"] = all
}

// stateOfContracts is a state override without precompiles.
func (g *generator) stateOfContracts() (changes object, address string) {
	changes, address = g.stateOverride()
	for _, precompile := range []common.Address{{19: 1}, {19: 10}} {
		delete(changes, precompile.Hex())
	}
	return changes, address
}

// overriddenList returns a call that mostly reads an overridden state.
func (g *generator) overriddenList() []any {
	changes, address := g.stateOfContracts()
	call := g.call()
	if g.chance(60) {
		call["to"] = address
	}
	return []any{call, g.block(), changes}
}

func (g *generator) overriddenEstimate() []any {
	if g.chance(50) {
		return g.overriddenList()
	}
	return append(g.overriddenList(), g.blockOverride())
}

// movedPrecompile returns a state override that moves a precompile, and its new address.
// Some overrides contradict themselves.
func (g *generator) movedPrecompile() (changes object, to common.Address) {
	to = pick(g, []common.Address{{0xaa}, {0xaa}, {19: 5}, pick(g, g.c.Emitters), pick(g, g.c.Accounts)})
	from := pick(g, []common.Address{{19: 1}, {19: 2}, {19: 4}, {19: 4}, {19: 6}})
	changes = object{from.Hex(): object{"movePrecompileToAddress": to}}
	switch g.r.IntN(12) {
	case 0:
		changes[to.Hex()] = object{"balance": "0x1"}
	case 1:
		changes[pick(g, g.c.Accounts).Hex()] = object{"movePrecompileToAddress": common.Address{0xbb}}
	case 2:
		changes[common.Address{19: 3}.Hex()] = object{"movePrecompileToAddress": to}
	case 3:
		changes[from.Hex()] = object{"movePrecompileToAddress": from}
	case 4, 5:
		changes[from.Hex()] = object{"movePrecompileToAddress": to, "code": environment(), "balance": "0x5", "nonce": "0x9"}
	case 6:
		changes[pick(g, g.c.Emitters).Hex()] = object{"state": object{}, "stateDiff": object{}}
	case 7:
		changes[pick(g, g.c.Emitters).Hex()] = object{"balance": (*hexutil.Big)(new(big.Int).Lsh(big.NewInt(1), 255)), "nonce": "0xffffffffffffffff"}
	}
	return changes, pick(g, []common.Address{to, to, from})
}

func (g *generator) movedCall() []any {
	changes, to := g.movedPrecompile()
	call := object{"to": to, "input": hexutil.Bytes(g.hash().Bytes()), "from": pick(g, g.c.Accounts)}
	return []any{call, g.block(), changes}
}

// rareSimulation validates its calls, or overrides blocks. The calls pay, or do not.
func (g *generator) rareSimulation() []any {
	base := g.number()
	number, time := base, g.c.Blocks[base].Header.Time
	blocks := []object{}
	for range 1 + g.r.IntN(3) {
		number, time = number+1+g.r.Uint64N(2), time+25+g.r.Uint64N(40)
		calls := []object{}
		for range g.r.IntN(4) {
			calls = append(calls, g.simulatedCall())
		}
		block := object{"calls": calls, "blockOverrides": g.simulatedBlock(number, time)}
		switch g.r.IntN(8) {
		case 0:
			block["stateOverrides"], _ = g.stateOverride()
		case 1:
			block["stateOverrides"], _ = g.movedPrecompile()
		case 2, 3, 4, 5:
			block["stateOverrides"] = richSenders(calls)
		}
		blocks = append(blocks, block)
	}
	payload := object{"blockStateCalls": blocks, "validation": g.chance(40), "traceTransfers": g.chance(30), "returnFullTransactions": g.chance(30)}
	if g.chance(20) {
		return []any{payload, object{"blockHash": g.c.Blocks[base].Hash}}
	}
	return []any{payload, quantity(base)}
}

// simulatedCall returns a transaction of the chain as a call of any type, mostly with fees.
func (g *generator) simulatedCall() object {
	call := g.typedCall()
	if g.chance(70) {
		g.pay(call)
	}
	if g.chance(5) {
		call["nonce"] = quantity(g.r.Uint64N(30))
	}
	return call
}

// richSenders is a state override that gives senders of calls a balance.
func richSenders(calls []object) object {
	rich := object{}
	for _, call := range calls {
		if from, ok := call["from"].(common.Address); ok {
			rich[from.Hex()] = object{"balance": "0x56bc75e2d63100000"} // 100 ether
		}
	}
	return rich
}

// pay adds fees to a call, which may be below the base fee.
func (g *generator) pay(call object) {
	call["maxFeePerGas"] = quantity(pick(g, []uint64{1e13, 1e13, 1e12, g.r.Uint64N(1e12)}))
	call["maxPriorityFeePerGas"] = quantity(g.r.Uint64N(2))
	call["gas"] = quantity(20_000 + g.r.Uint64N(1_000_000))
}

// simulatedBlock overrides some of a block's values, rarely with a number or a time that does
// not follow the block before.
func (g *generator) simulatedBlock(number, time uint64) object {
	o := object{}
	set := func(percent int, name string, value any) {
		if g.chance(percent) {
			o[name] = value
		}
	}
	set(40, "number", quantity(number))
	set(40, "time", quantity(time))
	set(2, "number", quantity(number-2))
	set(2, "time", quantity(time-60))
	set(1, "number", quantity(number+250+g.r.Uint64N(20)))
	set(15, "gasLimit", quantity(pick(g, []uint64{0, 100_000, 10_000_000, 30_000_000, 1 << 40})))
	set(30, "feeRecipient", pick(g, g.c.Accounts))
	set(30, "prevRandao", g.hash())
	set(30, "baseFeePerGas", quantity(g.r.Uint64N(1e10)))
	set(30, "blobBaseFee", quantity(g.r.Uint64N(1e9)))
	set(20, "beaconRoot", g.hash())
	if g.chance(25) {
		withdrawals := []object{}
		for i := range g.r.IntN(4) {
			withdrawals = append(withdrawals, object{"index": quantity(uint64(i)), "validatorIndex": quantity(g.r.Uint64N(100)), "address": g.address(), "amount": quantity(g.r.Uint64N(1e9))})
		}
		o["withdrawals"] = withdrawals
	}
	return o
}
