package upstream_test

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// signed returns a transaction of which only the signature matters.
func signed(t *testing.T, nonce uint64) *types.Transaction {
	t.Helper()
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
	if err != nil {
		t.Fatal(err)
	}
	config := ingesttest.Genesis(t).Config
	return types.MustSignNewTx(key, types.LatestSigner(config), &types.DynamicFeeTx{
		ChainID: config.ChainID, Nonce: nonce, GasFeeCap: big.NewInt(9), GasTipCap: big.NewInt(1), Gas: 21000, To: &common.Address{9},
	})
}

// heard collects transactions.
type heard struct {
	mu     sync.Mutex
	hashes map[common.Hash]bool // guarded by mu
}

func (h *heard) tell(_ context.Context, tx *types.Transaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hashes == nil {
		h.hashes = make(map[common.Hash]bool)
	}
	h.hashes[tx.Hash()] = true
}

func (h *heard) has(tx *types.Transaction) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hashes[tx.Hash()]
}

// unconfirmedLate is what a client is told if a node may have taken its transaction, but did not answer in time.
const unconfirmedLate = "no node confirmed the transaction: one did not answer in time and may have taken it"

// A transaction goes to the node with the best head that answers, and its verdict is
// returned.
func TestSend(t *testing.T) {
	w := newWorld(t, 6)
	lagging, best := newFakeNode("lagging", w), newFakeNode("best", w)
	lagging.head = w.grow(w.builder.Genesis, 3)
	best.head = w.grow(lagging.head, 3)
	f := newFollower(t, ingest.DefaultDepths())
	p, stop := f.pursue(t, lagging, best)
	defer stop()
	f.await(ref(best.head))
	until(t, "both answer", func() bool { s := p.Status(); return s.Nodes[0].Used && s.Nodes[1].Used })
	refusal := &node.RefusedError{Code: -32000, Message: "nonce too low"}
	known := &node.RefusedError{Code: -32000, Message: "already known"}
	busy := &node.RefusedError{Code: -32005, Message: "daily request count exceeded, request rate limited"}
	closed := &node.RefusedError{Code: -32601, Message: "the method eth_sendRawTransaction does not exist/is not available"}
	late := &node.RefusedError{Code: -32002, Message: "request timed out"}
	broken := &node.RefusedError{Code: -32603, Message: "internal error"}
	unconfirmed := &node.RefusedError{Code: -32000, Message: unconfirmedLate + ": sending the same transaction again is harmless"}
	empty := &node.RefusedError{Code: -32000, Message: "no node took the transaction: no upstream can answer: try again later"}
	for _, test := range []struct {
		name            string
		best, lagging   error
		want            error
		sentTo, sentToo int // totals of the best and the other node
	}{
		{"taken", nil, nil, nil, 1, 0},
		{"refused", refusal, nil, refusal, 2, 0},
		{"no answer of the best", errDropped, nil, nil, 3, 1},
		{"no answer of the best, refused by the other", errDropped, refusal, refusal, 4, 2},
		{"known to the best", known, nil, known, 5, 2},
		{"no answer of the best, which gave it to the other", errDropped, known, nil, 6, 3},
		{"too many requests for the best", busy, nil, nil, 7, 4},
		{"not offered by the best, refused by the other", closed, refusal, refusal, 8, 5},
		{"not offered by the best, too many requests for the other", closed, busy, closed, 9, 6},
		{"too many requests for the best, not sent to the other", busy, node.ErrNotSent, busy, 10, 7},
		{"the best was late, and gave it to the other", late, known, nil, 11, 8},
		{"the best failed, and gave it to the other", broken, known, nil, 12, 9},
		{"too many requests for the best, known to the other", busy, known, known, 13, 10},
		{"a node behind the best was late, taken by the other", unconfirmed, nil, nil, 14, 11},
		{"a node behind the best was late, known to the other", unconfirmed, known, nil, 15, 12},
		{"an Ashlar without nodes, known to the other", empty, known, known, 16, 13},
	} {
		best.set(func() { best.refusal = test.best })
		lagging.set(func() { lagging.refusal = test.lagging })
		if err := p.Send(t.Context(), []byte{1}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, expected %v", test.name, err, test.want)
		}
		if len(best.sent) != test.sentTo || len(lagging.sent) != test.sentToo {
			t.Errorf("%s: sent %d and %d times, expected %d and %d", test.name, len(best.sent), len(lagging.sent), test.sentTo, test.sentToo)
		}
	}
	const unreached, unconfirmedLost = "no upstream can be reached", "no node confirmed the transaction: one broke off before its answer and may have taken it"
	for _, test := range []struct {
		name          string
		best, lagging error
		want          string
	}{
		{"without an answer", errDropped, errDropped, unconfirmedLost},
		{"too many requests for the best, no answer of the other", busy, errDropped, unconfirmedLost},
		{"no answer of the best, not sent to the other", errDropped, node.ErrNotSent, unconfirmedLost},
		{"the best was late, too many requests for the other", late, busy, unconfirmedLate},
		{"a node behind the best was late, and the other fails", unconfirmed, broken, unconfirmedLate},
		{"sent to none", node.ErrNotSent, node.ErrNotSent, unreached},
	} {
		best.set(func() { best.refusal = test.best })
		lagging.set(func() { lagging.refusal = test.lagging })
		var refused *node.RefusedError
		if err := p.Send(t.Context(), []byte{1}); err == nil || errors.As(err, &refused) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, expected %q", test.name, err, test.want)
		}
	}
}

// The pools of nodes are read once the chain is at the head, by subscription or by polling.
// A node that supports neither is still followed.
func TestPoolsAreFollowed(t *testing.T) {
	w := newWorld(t, 7)
	asked, closed := newFakeNode("asked", w), newFakeNode("closed", w)
	closed.noPool = true
	head := w.grow(w.builder.Genesis, 4)
	asked.head, closed.head = w.at(head, 2), head
	asked.waiting = []*types.Transaction{signed(t, 0)}
	f, told := newFollower(t, ingest.DefaultDepths()), new(heard)
	_, stop := f.pursueWithPool(t, told.tell, asked, closed)
	f.await(ref(head))
	until(t, "an earlier transaction", func() bool { return told.has(signed(t, 0)) })
	asked.set(func() { asked.waiting = append(asked.waiting, signed(t, 1)) })
	until(t, "a new transaction", func() bool { return told.has(signed(t, 1)) })
	next := w.grow(head, 1)
	closed.set(func() { closed.head = next })
	f.await(ref(next))
	stop()
}

// The same with a real server.
func TestAnnouncedPool(t *testing.T) {
	n, _, chain := startFake(t, fakenode.Options{Raw: true, Subscriptions: true, Pool: true})
	n.Wait(signed(t, 0))
	client, err := node.New(n.SocketURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f, told := newFollower(t, ingest.DefaultDepths()), new(heard)
	p, stop := f.pursueWithPool(t, told.tell, client)
	n.Set(chain[:5], 0, 0)
	f.await(ref(chain[4]))
	until(t, "an earlier transaction", func() bool { return told.has(signed(t, 0)) })
	n.Wait(signed(t, 1))
	until(t, "a new transaction", func() bool { return told.has(signed(t, 1)) })
	n.Disconnect()
	raw, err := signed(t, 2).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the node is back", func() bool { return p.Send(t.Context(), raw) == nil })
	until(t, "a sent transaction", func() bool { return told.has(signed(t, 2)) })
	stop()
}

// When following stops, no further transaction of a pool is passed on.
func TestPoolEndsWithFollowing(t *testing.T) {
	w := newWorld(t, 8)
	n := newFakeNode("node", w)
	n.head = w.grow(w.builder.Genesis, 1)
	n.waiting = []*types.Transaction{signed(t, 0), signed(t, 1), signed(t, 2)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var passed atomic.Int64
	p := newFollower(t, ingest.DefaultDepths()).pursuit(t, quick(), func(context.Context, *types.Transaction) { passed.Add(1); stop() }, n)
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	if got := passed.Load(); got != 1 {
		t.Errorf("%d transactions were passed on, expected 1", got)
	}
}

// brokenPool is a node whose pool cannot be read.
type brokenPool struct {
	*fakeNode
	asked *atomic.Int64
}

func (b brokenPool) Pool(context.Context) ([]*types.Transaction, error) {
	b.asked.Add(1)
	return nil, errDropped
}

// A pool that cannot be read is asked again after the wait for failures only. The node's blocks are used meanwhile.
func TestBrokenPoolIsLeftAlone(t *testing.T) {
	w := newWorld(t, 9)
	var asked atomic.Int64
	n := brokenPool{newFakeNode("node", w), &asked}
	last := w.grow(w.builder.Genesis, 20)
	n.head = w.at(last, 1)
	pace := quick()
	pace.Retry, pace.RetryMax = time.Hour, time.Hour
	f := newFollower(t, ingest.DefaultDepths())
	p := f.pursuit(t, pace, func(context.Context, *types.Transaction) {}, n)
	stop := run(t, p.Run, f.Run)
	until(t, "a question for the pool", func() bool { return asked.Load() > 0 })
	for _, head := range w.upTo(last, 20) {
		n.set(func() { n.head = head })
		f.await(ref(head))
	}
	stop()
	if got := asked.Load(); got != 1 {
		t.Errorf("the pool was asked for %d times, expected once", got)
	}
	if counts := p.Status().Nodes[0].Counts; counts != (upstream.Counts{}) {
		t.Errorf("the node is blamed: %+v", counts)
	}
}
