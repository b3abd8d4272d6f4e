package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/sync/errgroup"
)

// recentBlocks are the last blocks that most questions concern.
const recentBlocks = 100

// mix is how often each kind of question is asked, of 100.
var mix = []struct {
	weight int
	make   func(q *questions) (method string, params []any)
}{
	{25, func(q *questions) (string, []any) { return "eth_getBalance", []any{q.account(), q.block()} }},
	{10, func(q *questions) (string, []any) {
		return "eth_getStorageAt", []any{q.contract(), hexutil.Uint64(q.IntN(4)), q.block()}
	}},
	{15, func(q *questions) (string, []any) { return "eth_getBlockByNumber", []any{q.block(), false} }},
	{15, func(q *questions) (string, []any) { return "eth_getTransactionByHash", []any{q.tx().Hash()} }},
	{15, func(q *questions) (string, []any) { return "eth_getTransactionReceipt", []any{q.tx().Hash()} }},
	{10, func(q *questions) (string, []any) {
		input := append(common.FromHex("0x70a08231"), common.LeftPadBytes(q.account().Bytes(), 32)...) // balanceOf
		return "eth_call", []any{map[string]any{"to": q.contract(), "input": hexutil.Bytes(input)}, q.block()}
	}},
	{5, func(q *questions) (string, []any) {
		to := q.number()
		return "eth_getLogs", []any{map[string]any{"address": q.contract(), "fromBlock": hexutil.Uint64(to - min(to, 10)), "toBlock": hexutil.Uint64(to)}}
	}},
	{5, func(q *questions) (string, []any) {
		return "eth_getProof", []any{q.contract(), []string{"0x0"}, q.block()}
	}},
}

// questions makes questions about a chain.
type questions struct {
	*rand.Rand
	chain     *sample.Chain
	contracts []common.Address
	recent    float64
	firstTx   int // of the last blocks
}

func newQuestions(chain *sample.Chain, recent float64, seed uint64) *questions {
	q := &questions{Rand: rand.New(rand.NewPCG(seed, 1)), chain: chain, recent: recent}
	seen := map[common.Address]bool{}
	for i, tx := range chain.Txs {
		if to := tx.To(); to != nil && len(tx.Data()) > 0 && !seen[*to] {
			seen[*to] = true
			q.contracts = append(q.contracts, *to)
		}
		if tx.Block+recentBlocks <= chain.Head() {
			q.firstTx = i + 1
		}
	}
	return q
}

func (q *questions) number() uint64 {
	if q.Float64() < q.recent {
		return q.chain.Head() - min(q.chain.Head(), q.Uint64N(recentBlocks))
	}
	return q.Uint64N(q.chain.Head() + 1)
}

func (q *questions) block() hexutil.Uint64    { return hexutil.Uint64(q.number()) }
func (q *questions) account() common.Address  { return q.chain.Accounts[q.IntN(len(q.chain.Accounts))] }
func (q *questions) contract() common.Address { return q.contracts[q.IntN(len(q.contracts))] }

func (q *questions) tx() sample.Tx {
	if recent := len(q.chain.Txs) - q.firstTx; recent > 0 && q.Float64() < q.recent {
		return q.chain.Txs[q.firstTx+q.IntN(recent)]
	}
	return q.chain.Txs[q.IntN(len(q.chain.Txs))]
}

// next returns the next question.
func (q *questions) next() (method string, params []any) {
	at := q.IntN(100)
	for _, kind := range mix {
		if at -= kind.weight; at < 0 {
			return kind.make(q)
		}
	}
	panic("the weights are less than 100")
}

// drive asks all readers until ctx is done, and counts answers and the time they took.
func drive(ctx context.Context, o options, chain *sample.Chain, readers []*reader, answers *atomic.Int64, latency *atomic.Int64) error {
	group, inner := errgroup.WithContext(ctx)
	for i, r := range readers {
		for worker := range o.workers {
			group.Go(func() error {
				q := newQuestions(chain, o.recent, uint64(i*o.workers+worker))
				for inner.Err() == nil {
					method, params := q.next()
					began := time.Now()
					var result json.RawMessage
					err := r.client.Call(inner, &result, method, params...)
					if inner.Err() != nil {
						return nil
					}
					if err := checkAnswer(method, result, err); err != nil {
						return fmt.Errorf("%s%v: %w", method, params, err)
					}
					answers.Add(1)
					latency.Add(int64(time.Since(began)))
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// checkAnswer returns an error unless a question was answered. All that is asked for is there, and
// a call may fail only because its contract does not answer it.
func checkAnswer(method string, result json.RawMessage, err error) error {
	var refused *node.Error
	if method == "eth_call" && errors.As(err, &refused) && (refused.Code == jsonrpc.CodeReverted || refused.Code == jsonrpc.CodeServer) {
		return nil
	}
	if err == nil && string(result) == "null" {
		return errors.New("the answer is null")
	}
	return err
}
