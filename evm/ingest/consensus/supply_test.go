package consensus_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/engine"
	"ashlar/evm/source/node"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/core/types"
)

// supplied is a chain driven by the test and supplied by nodes.
type supplied struct {
	*driven
	supplier *upstream.Supplier
	log      *ingesttest.Log
}

// startNode starts a node that serves blocks after the genesis.
func startNode(t *testing.T, between func(http.Handler) http.Handler, genesis *types.Block, blocks ...*types.Block) *fakenode.Node {
	t.Helper()
	n, err := fakenode.New(fakenode.Options{ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Between: between}, genesis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	n.Set(append([]*types.Block{genesis}, blocks...), 0, 0)
	return n
}

func newSupplied(t *testing.T, depths ingest.Depths, nodes ...*fakenode.Node) *supplied {
	t.Helper()
	f, log := newFollower(t, depths), new(ingesttest.Log)
	config := upstream.Config{
		Follower: f.Follower.Follower, ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Genesis: f.Genesis.Hash(),
		Pace: upstream.Pace{
			Poll: time.Millisecond, Recheck: 5 * time.Millisecond, Retry: time.Millisecond, RetryMax: 4 * time.Millisecond,
			Aside: 2 * time.Millisecond, AsideMax: 8 * time.Millisecond, Step: time.Hour,
		},
		Log: slog.New(log),
	}
	for _, n := range nodes {
		client, err := node.New(n.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		config.Nodes = append(config.Nodes, client)
	}
	s := &supplied{supplier: upstream.NewSupplier(config), log: log}
	s.driven = &driven{f, consensus.New(f.Follower.Follower, s.supplier, slog.New(log))}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	runs := []func(context.Context) error{s.supplier.Run, s.chain.Run, f.Run}
	done := make(chan error, len(runs))
	for _, run := range runs {
		go func() { done <- run(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range runs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// await waits until a block is the head.
func (s *supplied) await(want *types.Block) {
	s.t.Helper()
	await.Until(s.t, "the head "+ref(want).String(), func() bool { return s.Forkchoice().Head.Ref() == ref(want) })
}

// Missing ancestors of a head are fetched, whether or not the head itself was sent, and the
// chain moves to the head without another call.
func TestMissingAncestorsAreFetched(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 60, 1)
	n := startNode(t, nil, b.Genesis, blocks...)
	s := newSupplied(t, ingest.DefaultDepths(), n)
	s.expect("a block without its parent", s.send(blocks[39]), engine.Syncing, nil)
	s.expect("the next", s.send(blocks[40]), engine.Syncing, nil)
	status, err := s.tell(blocks[40], blocks[30], blocks[20])
	if err != nil {
		t.Fatal(err)
	}
	s.expect("the head", status, engine.Syncing, nil)
	s.await(blocks[40])
	if forkchoice := s.Forkchoice(); forkchoice.Safe != ref(blocks[30]) || forkchoice.Finalized != ref(blocks[20]) {
		t.Errorf("safe is %s and finalized %s", forkchoice.Safe, forkchoice.Finalized)
	}
	status, err = s.tell(blocks[59], nil, nil) // never sent
	if err != nil {
		t.Fatal(err)
	}
	s.expect("an unknown head", status, engine.Syncing, nil)
	s.await(blocks[59])
	await.Until(t, "the end of the way", func() bool { // after the head was moved
		_, syncing := s.chain.Sync()
		return !syncing
	})
}

// TestFetchedReorganization: a head on another branch, whose blocks are fetched, is a reorganization, although the
// head moves in steps while they arrive. It is logged once, with its depth, also where a bulk import dropped the old branch.
func TestFetchedReorganization(t *testing.T) {
	const depth = int64(3)
	for _, blocks := range []int{60, 400} { // one by one; in bulk
		b := builder(t)
		near, far := b.grow(b.Genesis, 3, 2), b.grow(b.Genesis, blocks, 1)
		s := newSupplied(t, ingest.Depths{Unfinalized: 100, Most: 200}, startNode(t, nil, b.Genesis, far...))
		for _, block := range near {
			s.expect("a block of the old branch", s.send(block), engine.Valid, block)
			s.mustTell(block, nil, nil)
		}
		if _, err := s.tell(far[blocks-1], nil, nil); err != nil {
			t.Fatal(err)
		}
		s.await(far[blocks-1])
		await.Until(t, "the log of a reorganization", func() bool { return len(s.log.Of("reorganization")) > 0 })
		if logged := s.log.Of("reorganization"); len(logged) != 1 || logged[0]["depth"] != depth || logged[0]["from"] != int64(3) {
			t.Errorf("%d blocks: logged %v, want one of depth %d from block 3", blocks, logged, depth)
		}
	}
}

// A distant head is reached by a bulk import up to the finalized block.
func TestFarBehind(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 400, 1)
	n := startNode(t, nil, b.Genesis, blocks...)
	s := newSupplied(t, ingest.Depths{Unfinalized: 100, Most: 200}, n)
	if _, err := s.tell(blocks[399], blocks[380], blocks[350]); err != nil {
		t.Fatal(err)
	}
	s.await(blocks[399])
	await.Until(t, "the follower to settle the rest", func() bool { return s.Forkchoice().Head.Settled().Number >= 351 })
	if at := s.Forkchoice().Finalized; at != ref(blocks[350]) {
		t.Errorf("finalized is %s", at)
	}
}

// Missing blocks may also come from the client while no node has them.
func TestMissingAncestorsAreSent(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 5, 1)
	n := startNode(t, nil, b.Genesis) // without any of them
	s := newSupplied(t, ingest.DefaultDepths(), n)
	for _, block := range blocks[1:] {
		s.expect("a block without its parent", s.send(block), engine.Syncing, nil)
	}
	status, err := s.tell(blocks[4], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.expect("the head", status, engine.Syncing, nil)
	s.expect("what was missing", s.send(blocks[0]), engine.Valid, blocks[0])
	s.await(blocks[4]) // without another call
}

// TestUnknownHeadWithoutSource: without a source nothing fetches missing blocks, and the network may stay behind for ever. The log
// warns of it once, however often the client names a head.
func TestUnknownHeadWithoutSource(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 4, 1)
	d := newDriven(t, ingest.DefaultDepths())
	log := new(bytes.Buffer)
	d.chain = consensus.New(d.Follower.Follower, nil, slog.New(slog.NewTextHandler(log, nil)))
	for _, block := range blocks[1:] {
		d.expect("a block without its parent", d.send(block), engine.Syncing, nil)
		status, err := d.tell(block, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.expect("the head", status, engine.Syncing, nil)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), "no source is configured") {
		t.Errorf("the log has %d warnings, want 1: %s", got, log)
	}
}

// altering is middleware that replaces a text in a node's answers while on is true.
func altering(on *atomic.Bool, from, to string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			body := answer.Body.Bytes()
			if on.Load() {
				body = bytes.ReplaceAll(body, []byte(from), []byte(to))
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		})
	}
}

// A node that returns other blocks than those requested is not trusted: other nodes are
// used, or the node itself once it is honest.
func TestLyingSupply(t *testing.T) {
	for name, alter := range map[string][2]string{
		"headers":     {`"gasLimit":"0xf`, `"gasLimit":"0xe`},
		"withdrawals": {`"amount":"0x2"`, `"amount":"0x3"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t)
			blocks := b.grow(b.Genesis, 40, 1)
			var lies atomic.Bool
			lies.Store(true)
			n := startNode(t, altering(&lies, alter[0], alter[1]), b.Genesis, blocks...)
			s := newSupplied(t, ingest.DefaultDepths(), n)
			if _, err := s.tell(blocks[39], nil, nil); err != nil {
				t.Fatal(err)
			}
			await.Until(t, "a lie to be found", func() bool {
				counts := s.supplier.Status().Nodes[0].Counts
				return counts.Invalid+counts.Failures > 0
			})
			if head := s.Forkchoice().Head.Ref(); head != ref(s.Genesis) {
				t.Errorf("the head is %s", head)
			}
			lies.Store(false)
			s.await(blocks[39])
		})
	}
}

// A node that leaves out a number that is zero has sent a header with the right hash. It cannot make
// the client believe that the block is invalid.
func TestSupplyWithoutZeros(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 3, 1)
	var lies atomic.Bool
	lies.Store(true)
	n := startNode(t, altering(&lies, `"blobGasUsed":"0x0",`, ""), b.Genesis, blocks...)
	s := newSupplied(t, ingest.DefaultDepths(), n)
	await.Until(t, "the head", func() bool {
		status, err := s.tell(blocks[2], nil, nil)
		if err != nil || status.Verdict == engine.Invalid {
			t.Fatalf("a valid head: %+v, %v", status, err)
		}
		return s.Forkchoice().Head.Ref() == ref(blocks[2])
	})
}

// If the blocks themselves are invalid, the client gets that status and the last valid
// ancestor.
func TestInvalidSupply(t *testing.T) {
	for _, count := range []int{30, 300} { // 300 are imported in bulk
		b := builder(t)
		blocks := b.grow(b.Genesis, count, 1)
		wrong := append([]*types.Block{}, blocks[:10]...)
		wrong = append(wrong, broken(blocks[10]))
		for _, block := range blocks[11:] {
			wrong = append(wrong, upon(wrong[len(wrong)-1], block))
		}
		n := startNode(t, nil, b.Genesis, wrong...)
		s := newSupplied(t, ingest.Depths{Unfinalized: 100, Most: 100}, n)
		head := wrong[len(wrong)-1]
		s.expect("a head without its ancestors", s.send(head), engine.Syncing, nil)
		status, err := s.tell(head, nil, nil)
		for err == nil && status.Verdict == engine.Syncing {
			status, err = s.tell(head, nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.expect("the head", status, engine.Invalid, blocks[9])
		s.expect("sent again", s.send(head), engine.Invalid, blocks[9])
		s.expect("the wrong one", s.send(wrong[10]), engine.Invalid, blocks[9])
		s.expect("a right one", s.send(blocks[9]), engine.Valid, blocks[9])
		s.mustTell(blocks[9], nil, nil)
	}
}

// If the client names another head meanwhile, that head is followed at once.
func TestAnotherWay(t *testing.T) {
	b := builder(t)
	far, near := b.grow(b.Genesis, 50, 1), b.grow(b.Genesis, 3, 2)
	held := make(chan struct{})
	n := startNode(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := new(bytes.Buffer)
			_, _ = body.ReadFrom(r.Body)
			if bytes.Contains(body.Bytes(), []byte(far[49].Hash().Hex())) {
				select {
				case <-held:
				case <-r.Context().Done():
				}
			}
			r.Body = http.NoBody
			r = r.Clone(r.Context())
			r.Body = readCloser{bytes.NewReader(body.Bytes())}
			next.ServeHTTP(w, r)
		})
	}, b.Genesis, far...)
	s := newSupplied(t, ingest.DefaultDepths(), n)
	if _, err := s.tell(far[49], nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, block := range near {
		s.expect("a right block", s.send(block), engine.Valid, block)
	}
	s.mustTell(near[2], nil, nil)
	close(held)
	time.Sleep(20 * time.Millisecond) // time for a fault to show
	if head := s.Forkchoice().Head.Ref(); head != (chain.Ref{Number: 3, Hash: near[2].Hash()}) {
		t.Errorf("the head is %s", head)
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
