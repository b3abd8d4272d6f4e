package differential

import (
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// kind is a method, or one use of it.
type kind struct {
	method string
	weight int // number of requests, in units of -each
	params func(*generator) []any
}

// kinds returns all methods and uses that are compared.
func kinds() []kind {
	none := func(*generator) []any { return []any{} }
	byNumber := func(g *generator) []any { return []any{g.blockNumber()} }
	byHash := func(g *generator) []any { return []any{g.blockHash()} }
	byAny := func(g *generator) []any { return []any{g.block()} }
	byTx := func(g *generator) []any { return []any{g.txHash()} }
	numberAndIndex := func(g *generator) []any {
		n := g.number()
		return []any{quantity(n), g.index(n)}
	}
	hashAndIndex := func(g *generator) []any {
		n := g.number()
		return []any{g.c.Blocks[n].Hash, g.index(n)}
	}
	account := func(g *generator) []any {
		if g.chance(5) {
			return []any{g.address()} // the latest block, by default
		}
		return []any{g.address(), g.block()}
	}
	call := func(g *generator) []any {
		if g.chance(5) {
			return []any{g.call()}
		}
		return []any{g.call(), g.block()}
	}
	return append(traces(), []kind{
		{"eth_chainId", 0, none}, {"net_version", 0, none}, {"net_listening", 0, none}, {"web3_clientVersion", 0, none},
		{"rpc_modules", 0, none}, {"eth_blockNumber", 0, none}, {"eth_syncing", 0, none}, {"eth_accounts", 0, none},
		{"eth_gasPrice", 0, none}, {"eth_maxPriorityFeePerGas", 0, none}, {"eth_blobBaseFee", 0, none},
		{"eth_baseFee", 0, none}, {"eth_config", 0, none}, {"net_peerCount", 0, none},
		{"web3_sha3", 1, func(g *generator) []any { return []any{hexutil.Bytes(g.hash().Bytes()[:g.r.IntN(33)])} }},

		{"eth_getStorageAt", 4, func(g *generator) []any { a, key := g.slot(); return []any{a, key, g.block()} }},
		{"eth_getBalance", 2, account}, {"eth_getCode", 2, account}, {"eth_getTransactionCount", 2, account},
		{"eth_getStorageValues", 2, func(g *generator) []any { return []any{g.storageValues(), g.block()} }},
		{"eth_getProof", 4, func(g *generator) []any { return g.proof() }},

		{"eth_getBlockByNumber", 3, func(g *generator) []any { return []any{g.blockNumber(), g.chance(50)} }},
		{"eth_getBlockByHash", 3, func(g *generator) []any { return []any{g.blockHash(), g.chance(50)} }},
		{"eth_getBlockReceipts", 2, byAny},
		{"eth_getHeaderByNumber", 1, byNumber}, {"eth_getHeaderByHash", 1, byHash},
		{"eth_getBlockTransactionCountByNumber", 1, byNumber}, {"eth_getBlockTransactionCountByHash", 1, byHash},
		{"eth_getUncleCountByBlockNumber", 1, byNumber}, {"eth_getUncleCountByBlockHash", 1, byHash},
		{"eth_getUncleByBlockNumberAndIndex", 1, numberAndIndex}, {"eth_getUncleByBlockHashAndIndex", 1, hashAndIndex},
		{"eth_getTransactionByHash", 3, byTx}, {"eth_getTransactionReceipt", 3, byTx}, {"eth_getRawTransactionByHash", 1, byTx},
		{"eth_getTransactionByBlockNumberAndIndex", 2, numberAndIndex}, {"eth_getTransactionByBlockHashAndIndex", 2, hashAndIndex},
		{"eth_getRawTransactionByBlockNumberAndIndex", 1, numberAndIndex}, {"eth_getRawTransactionByBlockHashAndIndex", 1, hashAndIndex},
		{"eth_getLogs", 10, func(g *generator) []any { return []any{g.filter()} }},
		{"eth_feeHistory", 3, func(g *generator) []any { return g.feeHistory() }},

		{"eth_call", 8, call}, {"eth_call", 4, (*generator).overriddenCall},
		{"eth_estimateGas", 4, call}, {"eth_createAccessList", 3, call},

		{"debug_getRawHeader", 1, byAny}, {"debug_getRawBlock", 1, byAny}, {"debug_getRawReceipts", 1, byAny},
		{"debug_getRawTransaction", 1, byTx},
	}...)
}

func (g *generator) proof() []any {
	address, key := g.slot()
	keys := []string{}
	switch g.r.IntN(5) {
	case 0:
		address = g.address()
	case 1:
		for range 8 {
			keys = append(keys, g.mappingKey())
		}
	case 2:
		keys = []string{key, key, g.hash().Hex()}
	default:
		keys = []string{key}
	}
	return []any{address, keys, g.block()}
}

// storageValues returns slots of a few accounts.
func (g *generator) storageValues() object {
	wanted := object{}
	for range 1 + g.r.IntN(3) {
		address, _ := g.slot()
		keys := []string{}
		for range g.r.IntN(4) {
			keys = append(keys, g.key())
		}
		wanted[address.Hex()] = keys
	}
	return wanted
}

func (g *generator) feeHistory() []any {
	counts := []any{"0x0", "0x1", "0x5", "0x14", 7, quantity(g.r.Uint64N(100))}
	if g.first == 0 {
		counts = append(counts, "0x401")
	}
	percentiles := []any{nil, []any{}, []any{50}, []any{0, 25, 50, 75, 100}, []any{10.5, 99.9}, []any{1, 1}, []any{50, 10}, []any{-1}, []any{101}}
	return []any{pick(g, counts), g.blockNumber(), pick(g, percentiles)}
}

// addedKinds are generated after all others, so that a seed still stands for the questions that
// it stood for before.
func addedKinds() []kind {
	return []kind{{"eth_simulateV1", 4, (*generator).simulation}, {"debug_traceCall", 4, (*generator).overriddenTrace}}
}

// questions returns each requests per unit of weight of all kinds, invalid ones, and some
// with the names of members in another case.
func questions(g *generator, each int) []question {
	all := append(questionsOf(g, kinds(), each), questionsOf(g, addedKinds(), each)...)
	all = append(all, wrongKeys(g)...)
	return append(all, question{"eth_noSuchMethod", []any{}}, question{"nonsense", []any{}}, question{"", []any{}})
}

// wrongKeys returns questions with more than one fault, one of them in the key of a slot.
func wrongKeys(g *generator) (all []question) {
	long, account := "0x"+strings.Repeat("1", 65), g.c.Accounts[0]
	for _, key := range []any{"0xzz", long, "0x1", 7} {
		for _, block := range []any{"latest", quantity(g.c.Head() + 9), 17, object{}} {
			all = append(all, question{"eth_getStorageAt", []any{account, key, block}}, question{"eth_getProof", []any{account, []any{key}, block}})
		}
	}
	return append(all, question{"eth_getProof", []any{account, []any{"0xzz", 7}}})
}

func questionsOf(g *generator, kinds []kind, each int) (all []question) {
	for _, k := range kinds {
		for range max(1, k.weight*each) {
			all = append(all, question{k.method, k.params(g)})
		}
	}
	for _, k := range kinds {
		for range each {
			all = append(all, question{k.method, g.spoil(k.params(g))})
		}
	}
	for _, k := range kinds {
		for range max(1, k.weight*each/8) {
			all = append(all, question{k.method, recased(k.params(g), pick(g, []func(string) string{strings.ToLower, strings.ToUpper}))})
		}
	}
	return all
}

// spoil makes parameters invalid: one too few, some too many, or one of a wrong type.
func (g *generator) spoil(params []any) any {
	switch g.r.IntN(8) {
	case 0:
		if len(params) > 0 {
			return params[:len(params)-1]
		}
		return append(params, "0x1")
	case 1:
		return append(params, "0x1", "0x2", "0x3")
	case 2:
		return []any{}
	case 3:
		return object{"block": "latest"}
	}
	wrong := []any{nil, 17, -1, 1.5, true, "", "0x", "abc", "0xzz", "0x0g", "0x01", "0x00", "latest ", "LATEST", object{}, []any{}, []any{1},
		"0x1234", g.hash().Hex() + "00", "0x" + g.hash().Hex()[2:41], "0xffffffffffffffffff", "0X1", g.hash().Hex()[2:], object{"fromBlock": 1},
		object{"to": "0x12"}, object{"data": "0x1", "input": "0x"}, object{"topics": "0x12"}, object{"address": []any{7}}, object{"blockHash": "0x1"},
		object{"blockHash": g.hash(), "blockNumber": "0x1"}, object{"data": "0x12", "input": "0x34"}, object{"gas": "1"}, object{"value": -1}}
	if len(params) == 0 {
		return append(params, pick(g, wrong))
	}
	params[g.r.IntN(len(params))] = pick(g, wrong)
	return params
}
