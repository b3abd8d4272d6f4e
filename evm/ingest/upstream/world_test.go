package upstream_test

import (
	"context"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// quick is a pace for tests.
func quick() upstream.Pace {
	return upstream.Pace{
		Poll: time.Millisecond, Recheck: 5 * time.Millisecond, Pool: time.Millisecond, Step: time.Hour,
		Retry: time.Millisecond, RetryMax: 4 * time.Millisecond,
		Aside: 2 * time.Millisecond, AsideMax: 8 * time.Millisecond,
	}
}

// patience is the time limit for expected events: far longer than they ever take, so that a
// test that waits in vain can say for what.
const patience = 2 * time.Minute

// until waits for a condition by polling.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// follower is a follower with helpers to wait for events.
type follower struct {
	*ingesttest.Follower
	t      *testing.T
	quorum int
	log    ingesttest.Log
}

func newFollower(t *testing.T, depths ingest.Depths) *follower {
	t.Helper()
	return &follower{Follower: ingesttest.NewFollower(t, depths), t: t}
}

// pursue follows nodes in the background, until the returned function is called.
func (f *follower) pursue(t *testing.T, nodes ...upstream.Node) (p *upstream.Pursuit, stop func()) {
	t.Helper()
	return f.pursueWithPool(t, nil, nodes...)
}

// pursueWithPool is pursue with a callback for pooled transactions.
func (f *follower) pursueWithPool(t *testing.T, waiting func(context.Context, *types.Transaction), nodes ...upstream.Node) (p *upstream.Pursuit, stop func()) {
	t.Helper()
	p = f.pursuit(t, quick(), waiting, nodes...)
	return p, run(t, p.Run, f.Run)
}

// pursueAt is pursue with a given pace.
func (f *follower) pursueAt(t *testing.T, pace upstream.Pace, nodes ...upstream.Node) (stop func()) {
	t.Helper()
	return run(t, f.pursuit(t, pace, nil, nodes...).Run, f.Run)
}

// pursueUnsettled is pursue without settling blocks meanwhile.
func (f *follower) pursueUnsettled(t *testing.T, nodes ...upstream.Node) (p *upstream.Pursuit, stop func()) {
	t.Helper()
	p = f.pursuit(t, quick(), nil, nodes...)
	return p, run(t, p.Run)
}

func (f *follower) pursuit(t *testing.T, pace upstream.Pace, waiting func(context.Context, *types.Transaction), nodes ...upstream.Node) *upstream.Pursuit {
	t.Helper()
	return upstream.New(upstream.Config{
		Waiting: waiting, Quorum: f.quorum,
		Nodes: nodes, Follower: f.Follower.Follower, ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Genesis: f.Genesis.Hash(),
		Pace: pace, Log: slog.New(&f.log),
	})
}

// run runs functions until the returned function is called, which cancels their context.
func run(t *testing.T, each ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, len(each))
	for _, runs := range each {
		go func() { done <- runs(ctx) }()
	}
	return func() {
		cancel()
		for range each {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

// await waits until the head is a block.
func (f *follower) await(want chain.Ref) {
	f.t.Helper()
	f.awaitForkchoice("the head "+want.String(), func(s tip.Forkchoice) bool { return s.Head.Ref() == want })
}

// awaitForkchoice waits until the forkchoice satisfies a condition.
func (f *follower) awaitForkchoice(what string, is func(tip.Forkchoice) bool) {
	f.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		moved := f.Tip.Moved()
		forkchoice := f.Forkchoice()
		if is(forkchoice) {
			return
		}
		select {
		case <-moved:
		case <-timer.C:
			f.t.Fatalf("waited in vain for %s; the head is %s, safe %s, finalized %s", what, forkchoice.Head.Ref(), forkchoice.Safe, forkchoice.Finalized)
		}
	}
}

// watch calls seen with every visible head, until the returned function is called or the
// test has failed.
func (f *follower) watch(seen func(chain.Ref)) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			moved := f.Tip.Moved()
			seen(f.Forkchoice().Head.Ref())
			select {
			case <-moved:
			case <-end:
				return
			case <-f.t.Context().Done():
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

func ref(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}

// world is a tree of valid blocks.
type world struct {
	*rand.Rand
	t       *testing.T
	builder *follower
	blocks  map[common.Hash]*types.Block
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 11)), t: t, blocks: make(map[common.Hash]*types.Block)}
	w.builder = newFollower(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
	w.blocks[w.builder.Genesis.Hash()] = w.builder.Genesis
	return w
}

// grow adds blocks to a parent and returns the last.
func (w *world) grow(parent *types.Block, count int) *types.Block {
	w.t.Helper()
	if err := w.builder.SetHead(w.t.Context(), parent.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
		w.t.Fatal(err)
	}
	for range count {
		block, _, err := w.builder.Build(w.t.Context(), func(parent *types.Header, _ *big.Int) (execute.Attributes, types.Transactions, error) {
			paid := types.Withdrawal{Index: w.Uint64N(1 << 40), Address: common.Address{byte(w.IntN(40)), 1}, Amount: 1 + w.Uint64N(1000)}
			return execute.Attributes{Timestamp: parent.Time + 1 + w.Uint64N(5), GasLimit: parent.GasLimit, Withdrawals: types.Withdrawals{&paid}}, nil, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.blocks[block.Hash()], parent = block, block
	}
	return parent
}

// at returns the block with a number on the branch up to head, or nil.
func (w *world) at(head *types.Block, number uint64) *types.Block {
	if number > head.NumberU64() {
		return nil
	}
	for head.NumberU64() > number {
		head = w.blocks[head.ParentHash()]
	}
	return head
}

// upTo returns the blocks of the branch up to head, from number 1 to last.
func (w *world) upTo(head *types.Block, last uint64) (blocks []*types.Block) {
	for number := uint64(1); number <= last; number++ {
		blocks = append(blocks, w.at(head, number))
	}
	return blocks
}
