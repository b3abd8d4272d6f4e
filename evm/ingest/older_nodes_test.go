package ingest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/older"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/kv/pebble"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// olderNode is a node with the blocks of an archive. It implements [older.Node].
type olderNode struct {
	t       *testing.T
	name    string
	archive *archive.Archive
	few     bool // it answers for one block at a time

	// asked, if not nil, is called before each answer.
	asked func() error
	// network, if not nil, is what it says of its network.
	network func() (chainID uint64, genesis common.Hash, err error)
	// Each of these, if not nil, may change an answer.
	header   func(*types.Header)
	body     func(number uint64, body *types.Body)
	receipts func(number uint64, receipts types.Receipts) types.Receipts
}

func (n *olderNode) Name() string { return n.name }

func (n *olderNode) Identity(ctx context.Context) (uint64, common.Hash, error) {
	if n.network != nil {
		return n.network()
	}
	genesis, err := n.archive.Header(ctx, 0)
	if err != nil {
		return 0, common.Hash{}, err
	}
	return n.archive.Genesis().Config.ChainID.Uint64(), genesis.Hash, nil
}

func (n *olderNode) begin() error {
	if n.asked == nil {
		return nil
	}
	return n.asked()
}

func (n *olderNode) Headers(ctx context.Context, from uint64, count int) (all []*types.Header, err error) {
	if err := n.begin(); err != nil {
		return nil, err
	}
	for number := from; number < from+uint64(count); number++ {
		held, err := n.archive.Header(ctx, number)
		if err != nil {
			return nil, err
		}
		header := types.CopyHeader(held.Header)
		if n.header != nil {
			n.header(header)
		}
		all = append(all, header)
	}
	return all, nil
}

// given returns how many of some blocks an answer has.
func (n *olderNode) given(count int) int {
	if n.few {
		return 1
	}
	return count
}

func (n *olderNode) block(number uint64) (*types.Block, types.Receipts, []byte) {
	source := &stateOf{archive: n.archive}
	header, err := n.archive.Header(n.t.Context(), number)
	if err != nil {
		n.t.Error(err)
		return nil, nil, nil
	}
	block, receipts, list, err := source.Block(header.Hash, number)
	if err != nil {
		n.t.Error(err)
	}
	return block, receipts, list
}

func (n *olderNode) Blocks(_ context.Context, from uint64, count int) (all []*types.Block, err error) {
	if err := n.begin(); err != nil {
		return nil, err
	}
	for number := from; number < from+uint64(n.given(count)); number++ {
		block, _, _ := n.block(number)
		if n.body != nil {
			body := *block.Body()
			body.Transactions = slices.Clone(body.Transactions)
			n.body(number, &body)
			block = types.NewBlockWithHeader(block.Header()).WithBody(body)
		}
		all = append(all, block)
	}
	return all, nil
}

func (n *olderNode) number(hash common.Hash) uint64 {
	number, err := n.archive.FindBlock(n.t.Context(), hash)
	if err != nil {
		n.t.Error(err)
	}
	return number
}

func (n *olderNode) Receipts(_ context.Context, blocks []common.Hash) (all []types.Receipts, err error) {
	if err := n.begin(); err != nil {
		return nil, err
	}
	for _, hash := range blocks[:n.given(len(blocks))] {
		number := n.number(hash)
		_, receipts, _ := n.block(number)
		if n.receipts != nil {
			receipts = n.receipts(number, receipts)
		}
		all = append(all, receipts)
	}
	return all, nil
}

func (n *olderNode) AccessLists(_ context.Context, blocks []common.Hash) (all [][]byte, err error) {
	if err := n.begin(); err != nil {
		return nil, err
	}
	for _, hash := range blocks[:n.given(len(blocks))] {
		_, _, list := n.block(n.number(hash))
		all = append(all, list)
	}
	return all, nil
}

// quick is a pace for tests.
func quick() older.Pace {
	return older.Pace{Batch: 6, Step: time.Minute, Retry: time.Microsecond, RetryMax: time.Millisecond, Tries: 3}
}

// olderStart is an archive that begins in the middle of a chain.
type olderStart struct {
	*starter
	store    *pebble.Store
	archive  *archive.Archive
	executor *execute.Executor
}

func newOlderStart(t *testing.T) *olderStart {
	t.Helper()
	t.Cleanup(ingest.SetStartBlocks(3))
	o := &olderStart{starter: newStarter(t), store: ingesttest.Store(t)}
	var err error
	if o.archive, err = o.start(o.store); err != nil {
		t.Fatal(err)
	}
	if o.executor, err = execute.New(o.genesis.Config); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *olderStart) fetch(ctx context.Context, nodes ...older.Node) error {
	return older.New(o.archive, o.executor, quick(), nodes...).Run(ctx)
}

func (o *olderStart) node(name string) *olderNode {
	return &olderNode{t: o.t, name: name, archive: o.source.archive}
}

// verify checks the whole archive.
func (o *olderStart) verify() {
	o.t.Helper()
	report, err := verify.Run(o.t.Context(), o.store, verify.Options{To: audit.Head, Full: true}, nil)
	if err != nil || !report.Sound {
		o.t.Errorf("verify: %v, %+v", err, report.Finding)
	}
}

// TestOlderFromNodes: with the blocks before the first one from nodes, all rows of blocks are
// those of an archive with the whole chain, whatever part of what is asked for a node answers,
// and however often it fails.
func TestOlderFromNodes(t *testing.T) {
	for _, few := range []bool{false, true} {
		o := newOlderStart(t)
		n := o.node("a")
		var asked atomic.Int64
		n.few, n.asked = few, func() error {
			if asked.Add(1)%5 == 0 {
				return errors.New("busy")
			}
			return nil
		}
		if err := o.fetch(t.Context(), n, o.node("b")); err != nil {
			t.Fatal(err)
		}
		if got := o.archive.Extent(); got != (archive.Extent{State: startNumber, Tries: startNumber}) {
			t.Errorf("it begins with %+v, want block 0", got)
		}
		o.verify()
		continueWith(t, o.archive, o.genesis, ingesttest.Chain(t)[startNumber:])
		tables := archive.NamedTables()
		for _, table := range append(tables.Own(), tables.Derived()...) {
			if want, got := rowsOf(t, o.whole, table), rowsOf(t, o.store, table); !maps.Equal(want, got) {
				t.Errorf("%s: %d rows, want %d, or others", table.Name, len(got), len(want))
			}
		}
	}
}

// TestOlderThanBlockOne: nothing is older than block 1 of an archive that begins there, because
// the genesis is always stored.
func TestOlderThanBlockOne(t *testing.T) {
	o := newOlderStart(t)
	if err := o.fetch(t.Context(), o.node("a")); err != nil {
		t.Fatal(err)
	}
	if err := o.archive.SetFirst(t.Context(), archive.Extent{Blocks: 1, State: startNumber, Tries: startNumber}); err != nil {
		t.Fatal(err)
	}
	if err := o.fetch(t.Context(), o.node("b")); err != nil {
		t.Error(err)
	}
}

// TestOlderInterrupted: the command is stopped at each of its requests, and continues.
func TestOlderInterrupted(t *testing.T) {
	o := newOlderStart(t)
	first := o.archive.Extent().Blocks
	for stop := int64(1); o.archive.Extent().Blocks > 0; stop++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := o.node("a")
		var asked atomic.Int64
		n.asked = func() error {
			if asked.Add(1) == stop {
				cancel()
			}
			return ctx.Err()
		}
		err := o.fetch(ctx, n)
		cancel()
		if now := o.archive.Extent().Blocks; now > first {
			t.Errorf("it begins with block %d, and began with %d before", now, first)
		} else {
			first = now
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		o.verify()
		if o.archive, err = archive.Open(t.Context(), o.store); err != nil {
			t.Fatal(err)
		}
	}
}
