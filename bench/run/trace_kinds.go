package main

import (
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"ashlar/internal/sample"
)

// traceKinds returns kinds that run transactions of the chain again, and simulated blocks.
func traceKinds() []kind {
	transaction := func(config object) func(*maker) []any {
		return func(m *maker) []any { return []any{m.transaction().Hash(), config} }
	}
	block := func(config object) func(*maker) []any {
		return func(m *maker) []any { return []any{m.block(), config} }
	}
	calls, diff := object{"tracer": "callTracer"}, object{"tracer": "prestateTracer", "tracerConfig": object{"diffMode": true}}
	// The first accounts of the chain are its busiest, the last have the fewest transactions.
	rare := func(m *maker) []any { return m.framesOf(m.c.Accounts[len(m.c.Accounts)/2:], 0) }
	busy := func(m *maker) []any { return m.framesOf(m.c.Emitters[:1], 100) }
	return []kind{
		{"debug_traceTransaction, callTracer", "debug_traceTransaction", transaction(calls), aged},
		{"debug_traceTransaction, struct logger", "debug_traceTransaction", transaction(object{}), 0},
		{"debug_traceTransaction, prestate diff", "debug_traceTransaction", transaction(diff), 0},
		{"debug_traceBlockByNumber, callTracer", "debug_traceBlockByNumber", block(calls), aged},
		{"trace_filter, a rare address, whole chain", "trace_filter", rare, 0},
		{"trace_filter, 100 frames of the busiest contract", "trace_filter", busy, 0},
		{"eth_simulateV1, two blocks of real calls", "eth_simulateV1", (*maker).simulation, 0},
	}
}

// transaction returns a transaction of the blocks that requests are about.
func (m *maker) transaction() sample.Tx {
	from := sort.Search(len(m.c.Txs), func(i int) bool { return m.c.Txs[i].Block >= m.first })
	to := sort.Search(len(m.c.Txs), func(i int) bool { return m.c.Txs[i].Block > m.last })
	if from == to {
		return any1(m, m.c.Txs)
	}
	return any1(m, m.c.Txs[from:to])
}

// framesOf returns a filter for the frames that one of some addresses has received: all of
// the chain, or a count of them from a random block on.
func (m *maker) framesOf(addresses []common.Address, count int) []any {
	filter := object{"toAddress": []common.Address{any1(m, addresses)}}
	if count == 0 {
		return []any{m.chain().of(filter)}
	}
	filter["count"] = count
	return []any{blockRange{m.number(), m.c.Head()}.of(filter)}
}

// simulation returns two blocks of calls, made from transactions of the chain, after the
// block of the first.
func (m *maker) simulation() []any {
	var blocks []object
	at := m.transaction()
	for range 2 {
		blocks = append(blocks, object{"calls": []object{replayed(at), replayed(any1(m, m.c.Txs))}})
	}
	return []any{object{"blockStateCalls": blocks, "traceTransfers": true}, hexutil.Uint64(at.Block)}
}
