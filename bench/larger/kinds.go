package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"ashlar/evm/query"
	"ashlar/internal/sample"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// sampled are keys that occur in the chain.
type sampled struct {
	first    uint64 // block that is looked at
	head     uint64
	blocks   []common.Hash
	txs      []transaction
	accounts []common.Address
	balances []sample.Balance // of tokens
}

type transaction struct {
	hash         common.Hash
	block, index uint64
	from         common.Address
	*types.Transaction
}

// sampledTransactions is how many transactions, and transfers, are taken at least, if there are
// so many: some of every block, so that questions about them need all of the store.
const sampledTransactions = 100_000

// sampleChain looks at the blocks of the chain from a share of it on.
func sampleChain(ctx context.Context, view *query.View, from float64) (*sampled, error) {
	s := &sampled{head: view.Head().Number}
	s.first = max(1, uint64(from*float64(s.head)))
	each := 1 + sampledTransactions/int(s.head-s.first+1)
	for number := s.first; number <= s.head; number++ {
		header, err := view.Header(ctx, number)
		if err != nil {
			return nil, err
		}
		s.blocks = append(s.blocks, header.Hash)
		body, err := view.Body(ctx, number, nil)
		if err != nil {
			return nil, err
		}
		for i := 0; i < body.Len(); i += 1 + body.Len()/each {
			raw, err := body.Transaction(i)
			if err != nil {
				return nil, err
			}
			decoded := new(types.Transaction)
			if err := decoded.UnmarshalBinary(raw); err != nil {
				return nil, err
			}
			s.txs = append(s.txs, transaction{crypto.Keccak256Hash(raw), number, uint64(i), body.Sender(i), decoded})
			s.accounts = append(s.accounts, body.Sender(i))
		}
		if err := s.addBalances(ctx, view, number, each); err != nil {
			return nil, err
		}
	}
	if len(s.balances) == 0 {
		return nil, errors.New("choose balances: the chain has no transfers of tokens")
	}
	return s, nil
}

// transfer is the topic of an ERC-20 transfer.
func transfer() common.Hash { return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")) }

// addBalances adds the holders of the first most transfers of a block.
func (s *sampled) addBalances(ctx context.Context, view *query.View, number uint64, most int) error {
	before := len(s.balances)
	filter := &query.Filter{From: number, To: number, Topics: [][]common.Hash{{transfer()}}}
	return view.Logs(ctx, filter, 1<<20, func(l *query.Log) error {
		if len(l.Topics) < 2*common.HashLength {
			return nil
		}
		holder := common.BytesToAddress(l.Topics[common.HashLength : 2*common.HashLength])
		if holder != (common.Address{}) && len(s.balances)-before < most { // else a mint
			s.balances = append(s.balances, sample.Balance{Token: l.Address, Holder: holder})
		}
		return nil
	})
}

// slot returns the slot in which a token with the usual layout keeps a balance.
func slot(b sample.Balance) common.Hash {
	return crypto.Keccak256Hash(common.LeftPadBytes(b.Holder[:], 32), make([]byte, 32))
}

// kind is a kind of request.
type kind struct {
	name, method string
	params       func(*maker) []any
}

// maker makes parameters of requests.
type maker struct {
	r *rand.Rand
	*sampled
}

type object = map[string]any

func one[T any](m *maker, from []T) T { return from[m.r.IntN(len(from))] }

func (m *maker) block() string {
	return hexutil.EncodeUint64(m.first + m.r.Uint64N(m.head-m.first+1))
}

// blocksInRow returns the first and the last of some consecutive blocks, or of all if there are fewer. A
// question about the logs of a whole long chain may be refused, because more than 10,000 match.
func (m *maker) blocksInRow(count uint64) (first, last string) {
	from, to := m.first, m.head
	if to-from >= count {
		from += m.r.Uint64N(to - from - count + 2)
		to = from + count - 1
	}
	return hexutil.EncodeUint64(from), hexutil.EncodeUint64(to)
}

func latest(*maker) string { return "latest" }

func kinds() []kind {
	some := (*maker).block
	storage := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any { b := one(m, m.balances); return []any{b.Token, slot(b), block(m)} }
	}
	balanceOf := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any {
			b := one(m, m.balances)
			return []any{object{"to": b.Token, "data": sample.BalanceOf(b.Holder)}, block(m)}
		}
	}
	proof := func(block func(*maker) string) func(*maker) []any {
		return func(m *maker) []any {
			b := one(m, m.balances)
			return []any{b.Token, []common.Hash{slot(b)}, block(m)}
		}
	}
	byHash := func(m *maker) []any { return []any{one(m, m.txs).hash} }
	return []kind{
		{"storage, latest", "eth_getStorageAt", storage(latest)},
		{"storage, any block", "eth_getStorageAt", storage(some)},
		{"balance, latest", "eth_getBalance", func(m *maker) []any { return []any{one(m, m.accounts), "latest"} }},
		{"balance, any block", "eth_getBalance", func(m *maker) []any { return []any{one(m, m.accounts), m.block()} }},
		{"block by hash, hashes only", "eth_getBlockByHash", func(m *maker) []any { return []any{one(m, m.blocks), false} }},
		{"block by number, hashes only", "eth_getBlockByNumber", func(m *maker) []any { return []any{m.block(), false} }},
		{"block by number, full", "eth_getBlockByNumber", func(m *maker) []any { return []any{m.block(), true} }},
		{"transaction by hash", "eth_getTransactionByHash", byHash},
		{"transaction by block and index", "eth_getTransactionByBlockNumberAndIndex", func(m *maker) []any {
			tx := one(m, m.txs)
			return []any{hexutil.Uint64(tx.block), hexutil.Uint64(tx.index)}
		}},
		{"receipt", "eth_getTransactionReceipt", byHash},
		{"logs of one block", "eth_getLogs", func(m *maker) []any { b := m.block(); return []any{object{"fromBlock": b, "toBlock": b}} }},
		{"logs, one holder, 2,000 blocks", "eth_getLogs", func(m *maker) []any {
			b := one(m, m.balances)
			holder := common.BytesToHash(b.Holder[:])
			first, last := m.blocksInRow(2000)
			return []any{object{"fromBlock": first, "toBlock": last, "topics": []any{transfer(), holder}}}
		}},
		{"balanceOf, latest", "eth_call", balanceOf(latest)},
		{"balanceOf, any block", "eth_call", balanceOf(some)},
		{"sum of 100 balances, latest", "eth_call", func(m *maker) []any { return []any{m.sum100(), "latest"} }},
		{"sum of 100 balances, any block", "eth_call", func(m *maker) []any { return []any{m.sum100(), m.block()} }},
		{"proof of an account, any block", "eth_getProof", func(m *maker) []any { return []any{one(m, m.accounts), []common.Hash{}, m.block()} }},
		{"proof of a slot, latest", "eth_getProof", proof(latest)},
		{"proof of a slot, any block", "eth_getProof", proof(some)},
		{"proof of 10 slots, any block", "eth_getProof", (*maker).proof10},
		{"simulation of two blocks, any block", "eth_simulateV1", (*maker).simulation},
		{"trace of a transaction", "debug_traceTransaction", func(m *maker) []any {
			return []any{one(m, m.txs).hash, object{"tracer": "callTracer"}}
		}},
	}
}

// proof10 returns the parameters of a proof of 10 balances of one token.
func (m *maker) proof10() []any {
	token := one(m, m.balances).Token
	slots := make([]common.Hash, 10)
	for i := range slots {
		slots[i] = slot(sample.Balance{Token: token, Holder: one(m, m.balances).Holder})
	}
	return []any{token, slots, m.block()}
}

// simulation returns two blocks of two calls each, made from transactions of the chain, after
// the block of the first.
func (m *maker) simulation() []any {
	at := one(m, m.txs)
	var blocks []object
	for range 2 {
		blocks = append(blocks, object{"calls": []object{at.call(), one(m, m.txs).call()}})
	}
	return []any{object{"blockStateCalls": blocks, "traceTransfers": true}, hexutil.Uint64(at.block)}
}

// call returns the transaction as a call.
func (t transaction) call() object {
	call := object{"from": t.from, "gas": hexutil.Uint64(t.Gas()), "input": hexutil.Bytes(t.Data()), "value": (*hexutil.Big)(t.Value())}
	if t.To() != nil {
		call["to"] = t.To()
	}
	return call
}

// sum100 returns a call that adds 100 balances of one token.
func (m *maker) sum100() object {
	token := one(m, m.balances).Token
	asked := make([]sample.Balance, 100)
	for i := range asked {
		asked[i] = sample.Balance{Token: token, Holder: one(m, m.balances).Holder}
	}
	return object{"data": hexutil.Bytes(sample.SumBalances(asked))}
}
