package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// kind is one kind of request.
type kind struct {
	name   string
	method string
	params func(*maker) []any
}

// maker makes parameters from what occurs in a chain.
type maker struct {
	r *rand.Rand
	c *sample.Chain
}

type object = map[string]any

func any1[T any](m *maker, from []T) T { return from[m.r.IntN(len(from))] }

func (m *maker) block() string { return hexutil.EncodeUint64(1 + m.r.Uint64N(m.c.Head())) }

// blocks is a range of so many blocks, or the whole chain where it is shorter.
func (m *maker) blocks(length uint64) (from, to string) {
	length = min(length, m.c.Head())
	first := 1 + m.r.Uint64N(m.c.Head()-length+1)
	return hexutil.EncodeUint64(first), hexutil.EncodeUint64(first + length - 1)
}

func (m *maker) topic() common.Hash {
	return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
}

func (m *maker) balanceOf() object {
	who := any1(m, m.c.Accounts)
	return object{"to": any1(m, m.c.Emitters[:min(20, len(m.c.Emitters))]),
		"data": hexutil.Bytes(append(crypto.Keccak256([]byte("balanceOf(address)"))[:4], common.LeftPadBytes(who[:], 32)...))}
}

// sum100 adds the balances of 100 accounts of one token in a call without a
// contract of its own, as clients' multicalls do.
func (m *maker) sum100() object {
	who := make([]common.Address, 100)
	for i := range who {
		who[i] = any1(m, m.c.Accounts)
	}
	return object{"data": hexutil.Bytes(sumBalances(m.c.Emitters[0], who))}
}

// sumBalances is creation code that asks a token for each balance and returns
// their sum. The accounts stand in its push instructions.
func sumBalances(token common.Address, who []common.Address) []byte {
	push := func(code []byte, data ...byte) []byte {
		return append(append(code, byte(vm.PUSH1)+byte(len(data)-1)), data...)
	}
	selector := binary.BigEndian.Uint32(crypto.Keccak256([]byte("balanceOf(address)")))
	code := push(nil, binary.BigEndian.AppendUint32(nil, selector)...)
	code = push(code, 0)
	code = append(code, byte(vm.MSTORE)) // the selector is at 28
	code = push(code, 0)                 // the sum, on the stack
	for _, w := range who {
		code = push(code, w[:]...)
		code = append(push(code, 32), byte(vm.MSTORE))
		for _, argument := range [][]byte{{32}, {64}, {36}, {28}, token[:]} { // output size and place, input size and place
			code = push(code, argument...)
		}
		code = append(code, byte(vm.GAS), byte(vm.STATICCALL), byte(vm.POP))
		code = append(push(code, 64), byte(vm.MLOAD), byte(vm.ADD))
	}
	code = append(push(code, 0), byte(vm.MSTORE))
	return append(push(push(code, 32), 0), byte(vm.RETURN))
}

// replayed is a transaction of the chain as a call, with its own gas: one that
// uses up all it has would otherwise measure each server's cap.
func replayed(tx sample.Tx) object {
	call := object{"from": tx.From, "gas": hexutil.Uint64(tx.Gas()), "input": hexutil.Bytes(tx.Data()), "value": (*hexutil.Big)(tx.Value())}
	if tx.To() != nil {
		call["to"] = tx.To()
	}
	return call
}

func (m *maker) proof(slots int, block string) []any {
	first := any1(m, m.c.Slots)
	keys := []common.Hash{first.Key}
	for len(keys) < slots { // slots of one contract, most of them used
		if s := any1(m, m.c.Slots); s.Address == first.Address || m.r.IntN(64) == 0 {
			keys = append(keys, s.Key)
		}
	}
	return []any{first.Address, keys, block}
}

func kinds() []kind {
	storage := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { s := any1(m, m.c.Slots); return []any{s.Address, s.Key, block(m)} }
	}
	latest := func(*maker) string { return "latest" }
	hash := func(m *maker) common.Hash { return m.c.Blocks[1+m.r.Uint64N(m.c.Head())].Hash }
	filter := func(make func(m *maker) object) func(*maker) []any {
		return func(m *maker) []any { return []any{make(m)} }
	}
	return []kind{
		{"eth_getStorageAt, latest", "eth_getStorageAt", storage(latest)},
		{"eth_getStorageAt, any block", "eth_getStorageAt", storage((*maker).block)},
		{"eth_getBalance, any block", "eth_getBalance", func(m *maker) []any { return []any{any1(m, m.c.Accounts), m.block()} }},
		{"block by hash, hashes only", "eth_getBlockByHash", func(m *maker) []any { return []any{hash(m), false} }},
		{"block by number, hashes only", "eth_getBlockByNumber", func(m *maker) []any { return []any{m.block(), false} }},
		{"block by hash, full", "eth_getBlockByHash", func(m *maker) []any { return []any{hash(m), true} }},
		{"block by number, full", "eth_getBlockByNumber", func(m *maker) []any { return []any{m.block(), true} }},
		{"transaction by hash", "eth_getTransactionByHash", func(m *maker) []any { return []any{any1(m, m.c.Txs).Hash()} }},
		{"transaction by block number and index", "eth_getTransactionByBlockNumberAndIndex", func(m *maker) []any {
			tx := any1(m, m.c.Txs)
			return []any{hexutil.Uint64(tx.Block), hexutil.Uint64(tx.Index)}
		}},
		{"receipt", "eth_getTransactionReceipt", func(m *maker) []any { return []any{any1(m, m.c.Txs).Hash()} }},
		{"logs of one block", "eth_getLogs", filter(func(m *maker) object { b := m.block(); return object{"fromBlock": b, "toBlock": b} })},
		{"logs of the busiest contract, 10 blocks", "eth_getLogs", filter(func(m *maker) object {
			from, to := m.blocks(10)
			return object{"address": m.c.Emitters[0], "fromBlock": from, "toBlock": to}
		})},
		{"logs, any of 50 topics, 1,000 blocks", "eth_getLogs", filter(func(m *maker) object {
			from, to := m.blocks(1000)
			var rare []common.Hash
			for range 50 {
				rare = append(rare, any1(m, m.c.Topics[2][len(m.c.Topics[2])/2:]))
			}
			return object{"topics": []any{m.topic(), nil, rare}, "fromBlock": from, "toBlock": to}
		})},
		{"logs, one rare holder, whole chain", "eth_getLogs", filter(func(m *maker) object {
			rare := any1(m, m.c.Topics[1][len(m.c.Topics[1])/2:])
			return object{"topics": []any{m.topic(), rare}, "fromBlock": "0x1", "toBlock": hexutil.Uint64(m.c.Head())}
		})},
		{"logs, nothing matches, whole chain", "eth_getLogs", filter(func(m *maker) object {
			var none common.Hash
			binary.BigEndian.PutUint64(none[:], m.r.Uint64())
			return object{"topics": []any{none}, "fromBlock": "0x1", "toBlock": hexutil.Uint64(m.c.Head())}
		})},
		{"eth_call balanceOf, latest", "eth_call", func(m *maker) []any { return []any{m.balanceOf(), "latest"} }},
		{"eth_call balanceOf, any block", "eth_call", func(m *maker) []any { return []any{m.balanceOf(), m.block()} }},
		{"eth_call that reverts", "eth_call", func(m *maker) []any {
			tx := m.c.Txs[any1(m, m.c.Reverted)]
			return []any{replayed(tx), hexutil.Uint64(tx.Block)}
		}},
		{"eth_call of a real transaction, at its block", "eth_call", func(m *maker) []any {
			tx := any1(m, m.c.Txs)
			return []any{replayed(tx), hexutil.Uint64(tx.Block)}
		}},
		{"eth_call summing 100 balances, latest", "eth_call", func(m *maker) []any { return []any{m.sum100(), "latest"} }},
		{"eth_call summing 100 balances, any block", "eth_call", func(m *maker) []any { return []any{m.sum100(), m.block()} }},
		{"eth_getProof, latest", "eth_getProof", func(m *maker) []any { return m.proof(1, "latest") }},
		{"eth_getProof, any block", "eth_getProof", func(m *maker) []any { return m.proof(1, m.block()) }},
		{"eth_getProof with 8 slots, any block", "eth_getProof", func(m *maker) []any { return m.proof(8, m.block()) }},
	}
}

// requestFile holds the requests of one kind, one a line.
type requestFile struct{ kind, path string }

func writeRequests(chain *sample.Chain, o options, chosen *regexp.Regexp) (files []requestFile, err error) {
	if len(chain.Topics[2]) == 0 || len(chain.Reverted) == 0 {
		return nil, errors.New("the chain has no event with three topics, or no transaction that reverted")
	}
	folder := filepath.Join(o.work, "requests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for i, k := range kinds() {
		if !chosen.MatchString(k.name) {
			continue
		}
		path := filepath.Join(folder, fmt.Sprintf("%02d.jsonl", i))
		m := &maker{rand.New(rand.NewPCG(o.seed, uint64(i))), chain}
		if err := writeFile(path, k, m, o.requests); err != nil {
			return nil, err
		}
		files = append(files, requestFile{k.name, path})
	}
	return files, nil
}

func writeFile(path string, k kind, m *maker, count int) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriter(file)
	for id := range count {
		line, err := node.Request(id, k.method, k.params(m)...)
		if err != nil {
			return err
		}
		w.Write(append(line, '\n')) // Flush returns the first error
	}
	return w.Flush()
}
