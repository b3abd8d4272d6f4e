package query

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/proven"
	"ashlar/history/paging"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// completion is a source that has every block of a chain. It counts the receipts that are read.
type completion struct {
	deltas  []*evm.Delta
	broken  uint64 // the receipts of this block cannot be read, unless it is 0
	lacking uint64 // nor can this block

	mu    sync.Mutex
	reads map[uint64]int // guarded by mu
}

var errCompletion = errors.New("no node answers")

func (c *completion) Block(_ context.Context, number uint64) (*evm.Delta, error) {
	if number == c.lacking && number > 0 {
		return nil, errCompletion
	}
	if number >= uint64(len(c.deltas)) {
		return nil, archive.ErrNotFound
	}
	return c.deltas[number], nil
}

func (c *completion) Receipts(_ context.Context, number uint64) (types.Receipts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number == c.broken && number > 0 {
		return nil, errCompletion
	}
	c.reads[number]++
	return c.deltas[number].Receipts, nil
}

func (c *completion) AccessList(context.Context, *types.Header) ([]byte, error) {
	return nil, archive.ErrNotFound
}

func (c *completion) FindBlock(context.Context, common.Hash) (uint64, error) {
	return 0, archive.ErrNotFound
}

func (c *completion) FindTransaction(context.Context, common.Hash) (archive.Place, error) {
	return archive.Place{}, archive.ErrNotFound
}

// parts are which blocks of a chain are where: from first to stored in the archive, and after settled on the branch
// of the head. All others are read from the source.
type parts struct {
	first, stored, settled, head uint64
	branch, executed             bool // there is a branch; of executed blocks
}

// partsToTry are those of an archive alone, with and without a window, of heads that are executed, and of heads that nodes name.
func partsToTry() []parts {
	return []parts{
		{stored: 99, head: 99},
		{first: 1, stored: 99, head: 99},
		{first: 40, stored: 99, head: 99},
		{stored: 70, settled: 70, head: 99, branch: true, executed: true},
		{first: 40, stored: 70, settled: 70, head: 99, branch: true, executed: true},
		{stored: 0, settled: 90, head: 99, branch: true},
		{stored: 60, settled: 90, head: 99, branch: true},
		{first: 40, stored: 60, settled: 90, head: 99, branch: true},
		{first: 40, stored: 60, settled: 60, head: 99, branch: true},
		{first: 40, stored: 60, settled: 50, head: 99, branch: true}, // the archive has gone on
		{first: 40, stored: 60, settled: 99, head: 99, branch: true},
		{first: 50, stored: 60, settled: 30, head: 99, branch: true}, // and its window has moved over blocks of the branch
	}
}

// newCompletedChain creates a chain of random logs, the parts of which are in different places.
func newCompletedChain(t *testing.T, p parts) (*logChain, *completion) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "completed", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int)})
	if err != nil {
		t.Fatal(err)
	}
	c, source := &logChain{random: rand.New(rand.NewPCG(p.head+p.first, 3)), store: store}, &completion{reads: map[uint64]int{}}
	var parent common.Hash
	for number := range p.head + 1 {
		delta := c.block(number, parent)
		parent = delta.Block.Hash()
		source.deltas = append(source.deltas, delta)
	}
	if err := a.Append(t.Context(), source.deltas[:p.stored+1]...); err != nil {
		t.Fatal(err)
	}
	if err := a.SetFirst(t.Context(), archive.Extent{Blocks: p.first, State: p.first, Tries: p.first}); err != nil {
		t.Fatal(err)
	}
	queried := NewChain(a, nil, nil)
	queried.history = a.CompletedBy(source)
	if !p.branch {
		if c.View, err = queried.View(); err != nil {
			t.Fatal(err)
		}
		return c, source
	}
	at := func(number uint64) chain.Ref {
		return chain.Ref{Number: number, Hash: source.deltas[number].Block.Hash()}
	}
	above, err := proven.OpenTip(t.Context(), at(p.settled))
	if err != nil {
		t.Fatal(err)
	}
	for number := p.settled + 1; number <= p.head; number++ {
		rows := new(tip.Rows)
		if p.executed {
			err = queried.history.Encode(t.Context(), rows, source.deltas[number], new(big.Int))
		} else {
			err = archive.EncodeContents(rows, source.deltas[number], new(big.Int))
		}
		if err == nil {
			err = above.Add(t.Context(), at(number), at(number-1).Hash, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := above.SetHead(t.Context(), at(p.head).Hash, chain.Ref{}, chain.Ref{}); err != nil {
		t.Fatal(err)
	}
	c.View = queried.branchView(above.Forkchoice().Head, !p.executed)
	return c, source
}

// TestSpans: the spans of a range have each of its blocks once, in order, and those have an index that the archive stores or
// that are on the branch.
func TestSpans(t *testing.T) {
	for _, p := range partsToTry() {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			c, _ := newCompletedChain(t, p)
			edges := []uint64{0, p.first, p.stored, p.settled, p.head}
			for _, edge := range slices.Clone(edges) {
				edges = append(edges, edge+1, max(edge, 1)-1)
			}
			for _, from := range edges {
				for _, to := range edges {
					if from > to || to > p.head {
						continue
					}
					next := from
					for _, s := range c.spans(from, to) {
						if s.first != next || s.last < s.first {
							t.Errorf("blocks %d to %d: %+v follows block %d", from, to, s, next-1)
						}
						for number := s.first; number <= s.last; number++ {
							if indexed := number >= p.first && number <= p.stored || p.branch && number > p.settled; s.indexed != indexed {
								t.Errorf("block %d has an index: %t, expected %t", number, s.indexed, indexed)
							}
						}
						next = s.last + 1
					}
					if next != to+1 {
						t.Errorf("blocks %d to %d: the last of all spans is %d", from, to, next-1)
					}
				}
			}
		})
	}
}

// TestLogsOfAllParts compares the logs that blooms and the index find together with a search in all logs, whole and page by page.
func TestLogsOfAllParts(t *testing.T) {
	for _, p := range partsToTry() {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			c, _ := newCompletedChain(t, p)
			for range 60 {
				f := c.filter()
				want := c.matching(f)
				got, err := c.ask(t.Context(), f, len(c.logs))
				if err != nil || !sameLogs(got, want) {
					t.Fatalf("%+v: %v, %v, expected %v", f, got, err, want)
				}
				for len(f.Topics) > 0 && len(f.Topics[len(f.Topics)-1]) == 0 { // pages are for filters that end with a topic
					f.Topics = f.Topics[:len(f.Topics)-1]
				}
				want = c.matching(f)
				if got := c.pages(t, f, 7); !sameLogs(got, want) {
					t.Fatalf("%+v in pages: %v, expected %v", f, got, want)
				}
			}
		})
	}
}

// pages collects the logs of a filter page by page.
func (c *logChain) pages(t *testing.T, f *Filter, size int) (found []placedLog) {
	t.Helper()
	r := paging.Range{Begin: paging.Place{Block: f.From}, To: f.To, Size: size}
	for {
		next, err := c.LogPage(t.Context(), f, r, func(log *Log) error {
			l, err := placedOf(log)
			found = append(found, l)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return found
		}
		r.Begin, r.Resumed = *next, true
	}
}

// TestLogsOfABrokenSource: a block of which the header or the receipts cannot be read is an error, also behind blocks whose logs
// were found.
func TestLogsOfABrokenSource(t *testing.T) {
	for kind, damage := range map[string]func(*completion, uint64){
		"header":   func(c *completion, number uint64) { c.lacking = number },
		"receipts": func(c *completion, number uint64) { c.broken = number },
	} {
		t.Run(kind, func(t *testing.T) {
			c, source := newCompletedChain(t, parts{first: 90, stored: 95, settled: 95, head: 99, branch: true})
			number := c.logs[slices.IndexFunc(c.logs, func(l placedLog) bool { return l.block >= 80 })].block
			if number >= 90 {
				t.Fatalf("block %d is stored", number)
			}
			damage(source, number)
			if _, err := c.ask(t.Context(), &Filter{To: number - 1}, len(c.logs)); err != nil {
				t.Errorf("before block %d: %v", number, err)
			}
			if got, err := c.ask(t.Context(), &Filter{To: 99}, len(c.logs)); !errors.Is(err, errCompletion) {
				t.Errorf("with block %d: %d logs, %v, expected the error of the source", number, len(got), err)
			}
		})
	}
}

// TestBloomsSkip: a search by blooms reads no receipts of blocks that cannot have logs that match, or that are below the one
// from which it goes on, and not those of a whole chain ahead.
func TestBloomsSkip(t *testing.T) {
	for _, f := range []*Filter{{Addresses: []common.Address{{5}}}, {Topics: [][]common.Hash{{{6}}}}} {
		c, source := newCompletedChain(t, parts{stored: 0, settled: 399, head: 399, branch: true})
		wanted := f.criteria()
		blooms := &bloomLogs{ctx: t.Context(), view: c.View, wanted: wanted, to: 399}
		for f.To = 399; ; {
			at, positions, ok, err := blooms.Next(f.From, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := c.matching(f)
			if !ok {
				if len(want) > 0 || f.From == 0 {
					t.Errorf("from block %d on: none, expected %v", f.From, want)
				}
				break
			}
			if len(want) == 0 || at != want[0].block || len(positions) == 0 {
				t.Fatalf("from block %d on: block %d, expected %v", f.From, at, want)
			}
			f.From = at + 20
		}
		for number := range source.reads {
			if bloom := source.deltas[number].Block.Bloom(); !wanted.mayBeIn(&bloom) {
				t.Errorf("the receipts of block %d were read, whose bloom lacks what is wanted", number)
			}
		}
		if len(source.reads) > 200 {
			t.Errorf("the receipts of %d blocks were read for a rare log", len(source.reads))
		}
	}
	c, source := newCompletedChain(t, parts{stored: 0, settled: 399, head: 399, branch: true})
	all := &bloomLogs{ctx: t.Context(), view: c.View, wanted: new(Filter).criteria(), to: 399}
	if at, _, ok, err := all.Next(300, nil); !ok || err != nil || at < 300 {
		t.Errorf("from block 300 on: block %d, %t, %v", at, ok, err)
	}
	for number := range source.reads {
		if number < 300 || number > 399 || source.deltas[number].Block.Bloom() == (types.Bloom{}) {
			t.Errorf("the receipts of block %d were read", number)
		}
	}
	if len(source.reads) == 0 || len(source.reads) > bloomAhead {
		t.Errorf("the receipts of %d blocks were read ahead, expected at most %d", len(source.reads), bloomAhead)
	}
}

// TestSpansAreWeakened: logs of blocks that are not executed here are proven at best, also if none matches.
func TestSpansAreWeakened(t *testing.T) {
	c, _ := newCompletedChain(t, parts{first: 40, stored: 60, settled: 90, head: 99, branch: true})
	c.chain.remote = new(remote)
	for _, test := range []struct {
		span span
		want jsonrpc.Verification
	}{
		{span{10, 39, false}, jsonrpc.Proven}, {span{61, 90, false}, jsonrpc.Proven},
		{span{40, 60, true}, jsonrpc.Executed}, {span{60, 95, true}, jsonrpc.Proven},
	} {
		c.remote = test.span.last > 90
		got := &weakest{jsonrpc.Executed}
		ctx := context.WithValue(t.Context(), jsonrpc.VerifierKey{}, jsonrpc.Verifier(got))
		found, err := c.candidatesOf(ctx, new(Filter).criteria(), test.span, nil, false)
		if err != nil || got.Verification != test.want {
			t.Errorf("%+v: %s, %v, expected %s", test.span, got.Verification, err, test.want)
		}
		if found != nil {
			found.Close()
		}
	}
}

// weakest records how an answer is verified.
type weakest struct{ jsonrpc.Verification }

func (w *weakest) Weaken(v jsonrpc.Verification) { w.Verification = min(w.Verification, v) }

// TestMovedWindow: logs from blocks that the window has left during a search are not all of them.
func TestMovedWindow(t *testing.T) {
	c, _ := newCompletedChain(t, parts{first: 40, stored: 99, head: 99})
	for _, test := range []struct {
		before, first uint64
		pruned        bool
	}{{20, 0, true}, {20, 39, true}, {20, 40, false}, {40, 0, false}, {40, 39, false}, {41, 0, false}} {
		err := c.checkMoved(archive.Extent{Blocks: test.before}, test.first)
		if test.pruned {
			wantPruned(t, fmt.Sprint(test), err, 40)
		} else if err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
	c.history = &c.chain.archive.History
	if err := c.checkMoved(archive.Extent{}, 0); err != nil {
		t.Errorf("an archive alone, whose ranges are checked otherwise: %v", err)
	}
}

// closing counts how often it is closed.
type closing struct {
	candidates
	closed *int
	err    error
}

func (c closing) Close() error { *c.closed++; return c.err }

// TestSpansClose: all spans are closed, also behind one that fails.
func TestSpansClose(t *testing.T) {
	closed := 0
	all := spanned{{closing{closed: &closed, err: errCompletion}, span{}}, {closing{closed: &closed}, span{}}}
	if err := all.Close(); !errors.Is(err, errCompletion) || closed != 2 {
		t.Errorf("%d of 2 spans were closed, %v", closed, err)
	}
}
