package differential

import (
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// rareTraces are traces with rare options, and of blocks in rare forms.
func rareTraces() []kind {
	return []kind{
		{"debug_traceTransaction", 4, func(g *generator) []any { return g.withConfig(g.txHash()) }},
		{"debug_traceBlockByNumber", 1, func(g *generator) []any { return g.withConfig(g.blockNumber()) }},
		{"debug_traceBlockByHash", 1, func(g *generator) []any { return g.withConfig(g.blockHash()) }},
		{"debug_traceBlock", 3, func(g *generator) []any { return []any{g.encodedBlock(), g.traceConfig(nativeTracers())} }},
		{"debug_traceCall", 4, (*generator).rareTrace},
		{"debug_intermediateRoots", 1, func(g *generator) []any { return g.withConfig(g.blockHash()) }},
		{"debug_executionWitness", 1, func(g *generator) []any { return []any{g.block()} }},
		{"debug_storageRangeAt", 1, func(g *generator) []any {
			address, _ := g.slot()
			return []any{g.block(), g.r.IntN(3), address, g.hash().Hex(), g.r.IntN(20)}
		}},
		{"debug_accountRange", 1, func(g *generator) []any {
			return []any{pick(g, []any{quantity(g.number()), "latest", object{"blockHash": g.c.Blocks[g.number()].Hash}, g.hash()}),
				pick(g, []any{"0x", g.hash()}), pick(g, []int{0, 1, 256, 257, 300}), g.chance(50), g.chance(50), true}
		}},
	}
}

// withConfig returns a subject and a configuration with rare or wrong options, or none.
func (g *generator) withConfig(subject any) []any {
	switch g.r.IntN(8) {
	case 0:
		return []any{subject}
	case 1:
		return []any{subject, nil}
	}
	return []any{subject, g.rareConfig()}
}

// rareConfig asks for the struct logger or a tracer with options of which some are wrong. All
// are cheap, because the struct logger's answers about whole blocks are large.
func (g *generator) rareConfig() object {
	config := object{}
	if g.chance(30) {
		config["limit"] = pick(g, []any{1, 10, 100, -1, "0x5"})
		config["reexec"] = pick(g, []any{0, 128, nil})
		config["debug"], config["disableStack"] = g.chance(50), g.chance(50)
		return config
	}
	config["tracer"] = pick(g, append(nativeTracers(), "noTracer", "{", "{}", "stateTracer"))
	options := []object{
		{"withLog": "yes"}, {"withLog": nil, "onlyTopCall": true}, {"unknown": 1}, {"onlyTopCall": true, "withLog": true},
		{"diffMode": true, "disableCode": true}, {"diffMode": true, "disableStorage": true}, {"diffMode": true, "includeEmpty": true},
		{"disableCode": true, "disableStorage": true, "includeEmpty": true}, {"diffMode": 1}, {"WITHLOG": true, "diffmode": true},
		{"stackTopItemsSize": 1 << 20, "withLog": true}, {"ignoredOpcodes": []string{"0x54"}}, {"ignoredOpcodes": "0x54"},
	}
	switch g.r.IntN(8) {
	case 0:
	case 1:
		config["tracerConfig"] = pick(g, []any{nil, []any{}, "withLog", 7, true})
	default:
		config["tracerConfig"] = pick(g, options)
	}
	if g.chance(15) {
		config["timeout"] = pick(g, []string{"20s", "1m", "1h2m3.5s"})
	}
	return config
}

// rareTrace traces a call after a block in any form, without a configuration, or with a
// precompile that is elsewhere.
func (g *generator) rareTrace() []any {
	call := g.typedCall()
	call["gas"] = quantity(g.r.Uint64N(500_000))
	if g.chance(30) {
		changes, to := g.movedPrecompile()
		call["to"] = to
		return []any{call, g.form(), object{"tracer": pick(g, []string{"callTracer", "prestateTracer"}), "stateOverrides": changes}}
	}
	if g.chance(5) {
		return []any{call}
	}
	params := g.withConfig(g.form())
	if config, ok := params[len(params)-1].(object); ok && len(params) > 1 && g.chance(30) {
		config["blockOverrides"] = object{"number": quantity(g.number() + 1), "difficulty": "0x5"}
	}
	return append([]any{call}, params...)
}

// encodedBlock returns a block of the chain in RLP, or one that is not: without a transaction, on
// another parent, or with bytes that do not belong to it.
func (g *generator) encodedBlock() any {
	block := g.c.Blocks[g.number()]
	header := types.CopyHeader(block.Header)
	transactions := g.transactionsOf(header.Number.Uint64())
	switch g.r.IntN(10) {
	case 0:
		transactions = transactions[:g.r.IntN(len(transactions)+1)]
	case 1:
		if len(transactions) > 0 {
			transactions = transactions[1:]
		}
	case 2:
		header.ParentHash = g.hash()
	case 3:
		header.Coinbase = g.address()
	case 4:
		header.Extra = g.hash().Bytes()
	}
	raw, err := rlp.EncodeToBytes(types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: transactions, Withdrawals: block.Withdrawals}))
	if err != nil {
		panic(err)
	}
	switch g.r.IntN(12) {
	case 0:
		raw = append(raw, 0)
	case 1:
		raw = raw[:g.r.IntN(len(raw))]
	case 2:
		raw[g.r.IntN(4)] ^= 0x10
	}
	return hexutil.Bytes(raw)
}

func (g *generator) transactionsOf(number uint64) (all types.Transactions) {
	for _, tx := range g.c.Txs {
		if tx.Block == number {
			all = append(all, tx.Transaction)
		}
	}
	return all
}
