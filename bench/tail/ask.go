package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// newClient returns a client with a connection for each that asks.
func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxIdleConns: connections, IdleConnTimeout: time.Hour}}
}

// outcome is what some connections have experienced.
type outcome struct {
	took   []time.Duration // of requests that were answered
	failed int
	why    string // what the first failure said
}

func (o *outcome) add(more outcome) {
	o.took = append(o.took, more.took...)
	o.failed += more.failed
	if o.why == "" {
		o.why = more.why
	}
}

// quantile returns a quantile in milliseconds, 0 if nothing was answered.
func (o *outcome) quantile(q float64) float64 {
	if len(o.took) == 0 {
		return 0
	}
	return float64(o.took[int(q*float64(len(o.took)-1))].Nanoseconds()) / 1e6
}

func (o *outcome) rate(length time.Duration) float64 { return float64(len(o.took)) / length.Seconds() }

// ask lets all connections ask for some time, heavy ones of which send heavy calls. They ask about
// other things each time, so that no answer is cached because it was given before.
func (s *served) ask(ctx context.Context, length time.Duration, heavy int) (lookups, heavies outcome, err error) {
	all := make([]outcome, s.options.connections-s.options.heavy+heavy)
	end := time.Now().Add(length)
	s.asked++
	var asking sync.WaitGroup
	for i := range all {
		c := connection{s: s, r: rand.New(rand.NewPCG(uint64(i), s.asked)), end: end}
		asking.Go(func() {
			if i < heavy {
				all[i] = c.askHeavy(ctx)
			} else {
				all[i] = c.askSteadily(ctx)
			}
		})
	}
	asking.Wait()
	for i, o := range all {
		if i < heavy {
			heavies.add(o)
		} else {
			lookups.add(o)
		}
	}
	slices.Sort(lookups.took)
	slices.Sort(heavies.took)
	if ctx.Err() != nil {
		return lookups, heavies, ctx.Err()
	}
	if len(lookups.took) == 0 {
		return lookups, heavies, fmt.Errorf("no look-up was answered: %s", lookups.why)
	}
	return lookups, heavies, nil
}

// connection asks one request after the other.
type connection struct {
	s   *served
	r   *rand.Rand
	end time.Time
}

// askSteadily looks something up at a steady pace. What is late is asked at once.
func (c connection) askSteadily(ctx context.Context) (o outcome) {
	due := time.Now().Add(time.Duration(c.r.Int64N(int64(c.s.options.pace))))
	for ; due.Before(c.end) && ctx.Err() == nil; due = due.Add(c.s.options.pace) {
		method, params := c.lookup()
		time.Sleep(time.Until(due))
		c.post(ctx, &o, c.s.url, due, method, params)
	}
	return o
}

// askHeavy sends one heavy call after the other.
func (c connection) askHeavy(ctx context.Context) (o outcome) {
	for time.Now().Before(c.end) && ctx.Err() == nil {
		method, params := c.heavy()
		c.post(ctx, &o, c.s.heavyURL, time.Now(), method, params)
	}
	return o
}

// post sends a request that was due at a time.
func (c connection) post(ctx context.Context, o *outcome, url string, due time.Time, method string, params []any) {
	body, err := node.Request(1, method, params...)
	if err == nil {
		err = c.exchange(ctx, url, body)
	}
	if err == nil {
		o.took = append(o.took, time.Since(due))
	} else if ctx.Err() == nil {
		o.failed++
		o.why = fmt.Sprintf("%s: %v", method, err)
	}
}

func (c connection) exchange(ctx context.Context, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.s.clients.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return checkAnswer(response.StatusCode, answer)
}

// checkAnswer returns an error unless the answer is a result. Nothing that is asked for is absent,
// so null is none.
func checkAnswer(status int, answer []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d: %.200s", status, answer)
	}
	const beginning = 100 // long results are not parsed
	_, result, found := bytes.Cut(answer[:min(len(answer), beginning)], []byte(`"result":`))
	if !found || bytes.HasPrefix(result, []byte("null")) {
		return fmt.Errorf("no result: %.200s", answer)
	}
	return nil
}

// tx returns a transaction of the settled part of the chain, and its block.
func (c connection) tx() (*types.Transaction, *types.Block) {
	for {
		block := c.s.chain.blocks[1+c.r.IntN(c.s.chain.settled-1)]
		if all := block.Transactions(); len(all) > 0 {
			return all[c.r.IntN(len(all))], block
		}
	}
}

// tokenTransfer returns a call of transfer(address,uint256). Other contracts than tokens would return any
// value, and so the call that sums them, which creates a contract, code that is not allowed.
func (c connection) tokenTransfer() *types.Transaction {
	selector := crypto.Keccak256([]byte("transfer(address,uint256)"))[:4]
	for {
		if tx, _ := c.tx(); tx.To() != nil && bytes.HasPrefix(tx.Data(), selector) {
			return tx
		}
	}
}

func (c connection) sender(tx *types.Transaction) common.Address {
	from, err := types.Sender(c.s.chain.signer, tx)
	if err != nil {
		return common.Address{}
	}
	return from
}

// lookup returns a question that reads a few rows.
func (c connection) lookup() (method string, params []any) {
	tx, block := c.tx()
	number := hexutil.Uint64(block.NumberU64())
	switch c.r.IntN(6) {
	case 0:
		return "eth_getBlockByNumber", []any{number, false}
	case 1:
		return "eth_getTransactionByHash", []any{tx.Hash()}
	case 2:
		return "eth_getTransactionReceipt", []any{tx.Hash()}
	case 3:
		return "eth_getBalance", []any{c.sender(tx), "latest"}
	case 4:
		return "eth_getBalance", []any{c.sender(tx), number}
	default:
		if tx.To() == nil {
			return "eth_getTransactionCount", []any{c.sender(tx), number}
		}
		return "eth_getStorageAt", []any{tx.To(), common.Hash{}, number}
	}
}

// heavy returns a call that keeps a processor busy for a while.
func (c connection) heavy() (method string, params []any) {
	tx, block := c.tx()
	number := hexutil.Uint64(block.NumberU64())
	switch c.r.IntN(4) {
	case 0:
		return "debug_traceBlockByNumber", []any{number, map[string]any{"tracer": "callTracer"}}
	case 1: // of one account, so that they fit into an answer
		topics := []any{transfer(), common.BytesToHash(c.sender(tx).Bytes())}
		return "eth_getLogs", []any{map[string]any{"fromBlock": "0x0", "toBlock": "latest", "topics": topics}}
	case 2:
		asked := make([]sample.Balance, 100)
		for i := range asked {
			tx := c.tokenTransfer()
			asked[i] = sample.Balance{Token: *tx.To(), Holder: c.sender(tx)}
		}
		return "eth_call", []any{map[string]any{"data": hexutil.Bytes(sample.SumBalances(asked))}, number}
	default:
		return "eth_getProof", []any{c.sender(tx), []string{}, number}
	}
}

// transfer is the topic of an ERC-20 transfer.
func transfer() common.Hash { return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")) }
