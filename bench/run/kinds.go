package main

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// kind is a kind of request.
type kind struct {
	name   string
	method string
	params func(*maker) []any
	is     trait
}

// trait selects further sections for a kind; all kinds are in the one of single requests.
type trait uint8

const (
	aged  trait = 1 << iota // about a block, which may be old or new
	light                   // cheap, so that the transport dominates
)

// kinds returns all kinds.
func kinds() []kind {
	return slices.Concat(stateKinds(), blockKinds(), logKinds(), callKinds(), proofKinds(), traceKinds())
}

func latest(*maker) string { return "latest" }

func stateKinds() []kind {
	storage := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { s := any1(m, m.c.Slots); return []any{s.Address, s.Key, block(m)} }
	}
	balance := func(m *maker) []any { return []any{any1(m, m.c.Accounts), m.block()} }
	return []kind{
		{"eth_getStorageAt, latest", "eth_getStorageAt", storage(latest), light},
		{"eth_getStorageAt, any block", "eth_getStorageAt", storage((*maker).block), aged | light},
		{"eth_getBalance, any block", "eth_getBalance", balance, aged | light},
	}
}

func blockKinds() []kind {
	byHash := func(full bool) func(*maker) []any {
		return func(m *maker) []any { return []any{m.c.Blocks[m.number()].Hash, full} }
	}
	byNumber := func(full bool) func(*maker) []any {
		return func(m *maker) []any { return []any{m.block(), full} }
	}
	transaction := func(m *maker) []any { return []any{any1(m, m.c.Txs).Hash()} }
	placed := func(m *maker) []any {
		tx := any1(m, m.c.Txs)
		return []any{hexutil.Uint64(tx.Block), hexutil.Uint64(tx.Index)}
	}
	receipts := func(m *maker) []any { return []any{m.block()} }
	return []kind{
		{"block by hash, hashes only", "eth_getBlockByHash", byHash(false), 0},
		{"block by number, hashes only", "eth_getBlockByNumber", byNumber(false), aged | light},
		{"block by hash, full", "eth_getBlockByHash", byHash(true), 0},
		{"block by number, full", "eth_getBlockByNumber", byNumber(true), aged},
		{"transaction by hash", "eth_getTransactionByHash", transaction, light},
		{"transaction by block number and index", "eth_getTransactionByBlockNumberAndIndex", placed, 0},
		{"receipt", "eth_getTransactionReceipt", transaction, light},
		{"receipts of a block", "eth_getBlockReceipts", receipts, aged},
	}
}

func logKinds() []kind {
	filter := func(make func(m *maker) object) func(*maker) []any {
		return func(m *maker) []any { return []any{make(m)} }
	}
	busiest := func(length uint64) func(*maker) []any {
		return filter(func(m *maker) object { return m.blocks(length).of(object{"address": m.c.Emitters[0]}) })
	}
	// Topics are in the order of their first appearance; those of the later half are rare.
	rare := func(m *maker, at int) common.Hash { return any1(m, m.c.Topics[at][len(m.c.Topics[at])/2:]) }
	fifty := filter(func(m *maker) object {
		wanted := make([]common.Hash, 50)
		for i := range wanted {
			wanted[i] = rare(m, 2)
		}
		return m.blocks(1000).of(object{"topics": []any{m.transfer(), nil, wanted}})
	})
	holder := filter(func(m *maker) object { return m.chain().of(object{"topics": []any{m.transfer(), rare(m, 1)}}) })
	holderOfToken := filter(func(m *maker) object {
		return m.chain().of(object{"address": m.c.Emitters[0], "topics": []any{m.transfer(), any1(m, m.c.Topics[1])}})
	})
	none := filter(func(m *maker) object {
		var topic common.Hash
		binary.BigEndian.PutUint64(topic[:], m.r.Uint64())
		return m.chain().of(object{"topics": []any{topic}})
	})
	most := filter(func(m *maker) object { return any1(m, m.full).of(object{"address": m.c.Emitters[0]}) })
	return []kind{
		{"logs of one block", "eth_getLogs", filter(func(m *maker) object { return m.blocks(1).of(object{}) }), aged | light},
		{"logs of the busiest contract, 1 block", "eth_getLogs", busiest(1), 0},
		{"logs of the busiest contract, 10 blocks", "eth_getLogs", busiest(10), 0},
		{"logs of the busiest contract, nearly 10,000", "eth_getLogs", most, 0},
		{"logs, any of 50 topics, 1,000 blocks", "eth_getLogs", fifty, 0},
		{"logs, one rare holder, whole chain", "eth_getLogs", holder, 0},
		{"logs, a contract and a holder, whole chain", "eth_getLogs", holderOfToken, 0},
		{"logs, nothing matches, whole chain", "eth_getLogs", none, 0},
	}
}

func callKinds() []kind {
	balance := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { return []any{m.balanceOf(), block(m)} }
	}
	sum := func(tokens int, block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { return []any{m.sum100(tokens), block(m)} }
	}
	reverts := func(m *maker) []any {
		tx := m.c.Txs[any1(m, m.c.Reverted)]
		return []any{replayed(tx), hexutil.Uint64(tx.Block)}
	}
	real := func(m *maker) []any {
		tx := any1(m, m.c.Txs)
		return []any{replayed(tx), hexutil.Uint64(tx.Block)}
	}
	return []kind{
		{"eth_call balanceOf, latest", "eth_call", balance(latest), 0},
		{"eth_call balanceOf, any block", "eth_call", balance((*maker).block), aged | light},
		{"eth_call that reverts", "eth_call", reverts, 0},
		{"eth_call of a real transaction, at its block", "eth_call", real, 0},
		{"eth_call summing 100 balances, latest", "eth_call", sum(1, latest), 0},
		{"eth_call summing 100 balances, any block", "eth_call", sum(1, (*maker).block), aged},
		{"eth_call to 20 contracts, 100 times, any block", "eth_call", sum(maxTokens, (*maker).block), 0},
	}
}

func proofKinds() []kind {
	proof := func(slots int, block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { return m.proof(slots, block(m)) }
	}
	return []kind{
		{"eth_getProof of an account, any block", "eth_getProof", proof(0, (*maker).block), aged},
		{"eth_getProof with a slot, latest", "eth_getProof", proof(1, latest), 0},
		{"eth_getProof with a slot, any block", "eth_getProof", proof(1, (*maker).block), aged | light},
		{"eth_getProof with 10 slots, any block", "eth_getProof", proof(10, (*maker).block), aged},
	}
}
