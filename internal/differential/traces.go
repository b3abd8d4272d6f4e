package differential

import "slices"

// nativeTracers are go-ethereum's own.
func nativeTracers() []string {
	return []string{"callTracer", "flatCallTracer", "prestateTracer", "4byteTracer", "noopTracer", "erc7562Tracer", "keccak256PreimageTracer"}
}

// tracers are those that a trace may be asked of: go-ethereum's own, those that it has
// in JavaScript, and scripts as clients send them.
func tracers() []string {
	return append(nativeTracers(),
		"callTracerLegacy", "prestateTracerLegacy", "bigramTracer", "evmdisTracer", "opcountTracer", "trigramTracer", "unigramTracer", "4byteTracerLegacy",
		`{count: 0, step: function(log) { this.count += log.getGas() % 7 }, fault: function(log) { this.failed = log.getError() },
		  result: function(ctx) { return {count: this.count, failed: this.failed, type: ctx.type, gasUsed: ctx.gasUsed, to: ctx.to && toHex(ctx.to)} }}`,
		`{frames: [], enter: function(f) { this.frames.push([f.getType(), toHex(f.getFrom()), toHex(f.getTo()), f.getGas()]) },
		  exit: function(r) { this.frames.push([r.getGasUsed(), toHex(r.getOutput()), r.getError()]) },
		  fault: function() {}, result: function() { return this.frames }}`,
		`{slots: {}, step: function(log, db) { if (log.op.toString() == "SLOAD") {
		    var key = log.stack.peek(0).toString(16); this.slots[key] = toHex(db.getState(log.contract.getAddress(), toWord(key))) } },
		  fault: function() {}, result: function(ctx, db) { return {slots: this.slots, balance: db.getBalance(ctx.from).toString(), block: ctx.block} }}`,
		`{result: function() { throw "no result" }, fault: function() {}}`,
	)
}

// traceConfig asks for one of the tracers with some of its options.
func (g *generator) traceConfig(tracers []string) object {
	config := object{}
	if g.chance(30) { // the struct logger
		for _, name := range []string{"enableMemory", "disableStack", "disableStorage", "enableReturnData"} {
			if g.chance(40) {
				config[name] = g.chance(60)
			}
		}
		return config
	}
	tracer := pick(g, tracers)
	config["tracer"] = tracer
	switch tracer {
	case "callTracer":
		config["tracerConfig"] = object{"withLog": g.chance(50), "onlyTopCall": g.chance(30)}
	case "flatCallTracer":
		config["tracerConfig"] = object{"convertParityErrors": g.chance(50), "includePrecompiles": g.chance(50)}
	case "prestateTracer":
		config["tracerConfig"] = pick(g, []object{{"diffMode": true}, {"disableCode": true}, {"disableStorage": true}, {"includeEmpty": true}, {}})
	case "erc7562Tracer":
		config["tracerConfig"] = pick(g, []object{{"withLog": true}, {"stackTopItemsSize": g.r.IntN(6)}, {"ignoredOpcodes": []string{"0x54", "0x60"}}, {}})
	}
	if !slices.Contains(nativeTracers(), tracer) {
		config["timeout"] = "25s" // scripts can take longer than the usual 5 s on a busy machine; geth's server waits for 30
	}
	if g.chance(5) {
		config["tracer"] = "muxTracer"
		config["tracerConfig"] = pick(g, []object{
			{"callTracer": object{"withLog": true}, "prestateTracer": object{"diffMode": true}, "4byteTracer": nil},
			{"flatCallTracer": object{"includePrecompiles": true}, "erc7562Tracer": object{"withLog": true}, "noopTracer": nil},
			{"muxTracer": object{"callTracer": object{"onlyTopCall": true}}, "keccak256PreimageTracer": nil},
		})
	}
	return config
}

// tracedCall is a call, a block, and a configuration.
func (g *generator) tracedCall() []any {
	config := g.traceConfig(tracers())
	number := g.number()
	if g.chance(30) {
		config["txIndex"] = g.index(number)
	}
	call := g.call()
	call["gas"] = quantity(g.r.Uint64N(2_000_000)) // what a call gets that names none is each node's own
	return []any{call, quantity(number), config}
}

// overriddenTrace is tracedCall with a configuration that overrides state, and mostly what the call reads.
func (g *generator) overriddenTrace() []any {
	params := g.tracedCall()
	call, config := params[0].(object), params[2].(object)
	changes, address := g.stateOverride()
	config["stateOverrides"] = changes
	if g.chance(60) {
		call["to"] = address
	}
	if g.chance(50) {
		config["blockOverrides"] = g.blockOverride()
	}
	if g.chance(5) {
		call["maxFeePerBlobGas"] = quantity(g.r.Uint64N(2))
	}
	return params
}

// storageRange is a range of the slots of a contract, rarely before a transaction that
// its block does not have.
func (g *generator) storageRange() []any {
	address, _ := g.slot()
	number, start := g.number(), "0x"
	if g.chance(50) {
		start = g.hash().Hex()
	}
	return []any{quantity(number), g.r.IntN(g.c.Blocks[number].Txs + 2), address, start, g.r.IntN(20)}
}

// traces are the kinds of questions about traces. Whole blocks are traced by native
// tracers only: scripts can take geth longer than its server waits.
func traces() []kind {
	return []kind{
		{"debug_traceTransaction", 6, func(g *generator) []any { return []any{g.txHash(), g.traceConfig(tracers())} }},
		{"debug_traceBlockByNumber", 2, func(g *generator) []any { return []any{g.blockNumber(), g.traceConfig(nativeTracers())} }},
		{"debug_traceBlockByHash", 2, func(g *generator) []any { return []any{g.blockHash(), g.traceConfig(nativeTracers())} }},
		{"debug_traceCall", 6, (*generator).tracedCall},
		{"eth_fillTransaction", 2, func(g *generator) []any {
			return []any{g.call()}
		}},
		{"debug_executionWitness", 2, func(g *generator) []any { return []any{g.blockHash()} }},
		{"debug_intermediateRoots", 1, func(g *generator) []any { return []any{g.blockHash()} }},
		{"debug_storageRangeAt", 2, (*generator).storageRange},
		{"debug_accountRange", 2, func(g *generator) []any {
			return []any{quantity(g.number()), g.hash(), g.r.IntN(20), g.chance(50), g.chance(50), true}
		}},
		{"debug_getModifiedAccountsByNumber", 1, func(g *generator) []any { from := g.number(); return []any{from, from + g.r.Uint64N(4)} }},
		{"debug_getModifiedAccountsByHash", 1, func(g *generator) []any { return []any{g.blockHash()} }},
	}
}
