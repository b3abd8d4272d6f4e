package api_test

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"strings"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/pool"
	"ashlar/internal/await"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// TestPoolBehindTheHead: the pool follows a new block some milliseconds after clients see it. A client that has seen its
// ether arrive spends it at once, and must not be refused.
func TestPoolBehindTheHead(t *testing.T) {
	o := serveBehind(t)
	next, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	to := crypto.PubkeyToAddress(next.PublicKey)
	config := o.chain.Executor().Config()
	transfer := func(key *ecdsa.PrivateKey, value int64) hexutil.Bytes {
		t.Helper()
		tx := types.MustSignNewTx(key, types.LatestSigner(config), &types.DynamicFeeTx{
			ChainID: config.ChainID, Gas: 21_000, GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(2), To: &to, Value: big.NewInt(value),
		})
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var arrived common.Hash
	o.ask(t, &arrived, "eth_sendRawTransaction", transfer(testECDSA(t), params.Ether))
	o.build() // the pool is not told
	o.chain.Pool().Remove(arrived)

	requests := []string{
		requestOf(t, "eth_sendRawTransaction", transfer(next, 1)),
		requestOf(t, "eth_getTransactionCount", o.sender, "pending"),
		requestOf(t, "eth_fillTransaction", map[string]any{"from": o.sender, "to": to}),
	}
	wants := []string{`"result":"0x`, `"result":"0x1"`, `"nonce":"0x1"`}
	answers := make([]chan string, len(requests))
	for i, request := range requests {
		answers[i] = make(chan string, 1)
		go func() { answers[i] <- string(o.Answer(t.Context(), []byte(request), nil)) }()
	}
	time.Sleep(50 * time.Millisecond) // for the requests to find the pool behind
	defer o.keepPool()()
	for i, answer := range answers {
		if got := <-answer; !strings.Contains(got, wants[i]) {
			t.Errorf("%s: %s, expected %s", requests[i], got, wants[i])
		}
	}
}

// TestPoolOnADroppedBranch: the pool is at a block that a reorganization to a lower head has dropped.
func TestPoolOnADroppedBranch(t *testing.T) {
	o := serveBehind(t)
	view, err := o.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	o.send(0)
	o.mine()
	o.mine()
	if err := o.follower.SetHead(t.Context(), view.Head().Hash, chain.Ref{}, chain.Ref{}); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		answer <- string(o.Answer(t.Context(), []byte(requestOf(t, "eth_getTransactionCount", o.sender, "pending")), nil))
	}()
	time.Sleep(50 * time.Millisecond) // for the request to find the pool on the other branch
	defer o.keepPool()()
	if got := <-answer; !strings.Contains(got, `"result":"0x0"`) {
		t.Errorf("%s, expected 0x0", got)
	}
}

// yields counts how often a call gives its slot away.
type yields int

func (y *yields) Yield(_ context.Context, wait func() error) error {
	*y++
	return wait()
}

// TestPoolKeepsSlot: a call gives its slot away while it waits for the pool, and keeps it if it does not wait.
func TestPoolKeepsSlot(t *testing.T) {
	o := serveOpen(t)
	limits := pool.DefaultLimits()
	limits.Behind = 10 * time.Millisecond
	o.chain.SetPool(pool.New(o.chain.Executor().Config(), limits))
	o.mine()
	count := new(yields)
	ctx := context.WithValue(t.Context(), limit.YielderKey{}, limit.Yielder(count))
	for i, want := range []yields{0, 1, 1} {
		if _, err := o.chain.AwaitPool(ctx); err != nil || *count != want {
			t.Errorf("call %d: it gave its slot away %d times, %v; expected %d", i, *count, err, want)
		}
		if i == 0 {
			o.build() // the pool does not follow
		}
	}
}

// keepPool has the pool follow the head until stop is called.
func (o *open) keepPool() (stop func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	kept := make(chan error, 1)
	go func() { kept <- o.chain.RunPool(ctx, nil) }()
	return func() {
		o.t.Helper()
		cancel()
		if err := <-kept; err != nil {
			o.t.Error(err)
		}
	}
}

// serveBehind is serveOpen with calls that wait for the pool for as long as a busy machine needs.
func serveBehind(t *testing.T) *open {
	t.Helper()
	o := serveOpen(t)
	limits := pool.DefaultLimits()
	limits.Behind = await.Patience
	o.chain.SetPool(pool.New(o.chain.Executor().Config(), limits))
	o.mine()
	return o
}

// TestPoolStaysBehind: a pool that cannot follow the head takes transactions as of the head that it has.
func TestPoolStaysBehind(t *testing.T) {
	o := serveOpen(t)
	o.build()
	o.send(0)
	if pending, _ := o.chain.Pool().Stats(); pending != 1 {
		t.Errorf("%d transactions wait, expected 1", pending)
	}
}
