package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/history/paging"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
	"ashlar/starknet/source/synthetic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// settleDepth is the depth of the followers of these tests.
const settleDepth = 3

// mortal is a store that applies the rows of a batch one by one, in any order, and then its pointers at once.
// It ends after a number of such steps: every later write fails.
type mortal struct {
	kv.Store
	left   int // steps until the end; negative: it does not end
	steps  int // taken
	random *rand.Rand
}

func newMortal(under kv.Store, left int) *mortal {
	return &mortal{Store: under, left: left, random: rand.New(rand.NewPCG(uint64(left), 1))}
}

// Piecewise implements kv.Piecewise.
func (m *mortal) Piecewise() {}

// NewBatch implements kv.Store.
func (m *mortal) NewBatch() kv.Batch { return new(steps) }

// Write implements kv.Store.
func (m *mortal) Write(ctx context.Context, b kv.Batch) error {
	batch := b.(*steps)
	m.random.Shuffle(len(batch.rows), func(i, k int) { batch.rows[i], batch.rows[k] = batch.rows[k], batch.rows[i] })
	all := slices.Clone(batch.rows)
	if len(batch.pointers) > 0 {
		all = append(all, func(to kv.Batch) {
			for _, set := range batch.pointers {
				set(to)
			}
		})
	}
	for _, apply := range all {
		if m.left == 0 {
			return kvtest.ErrCrash
		}
		m.left--
		m.steps++
		one := m.Store.NewBatch()
		apply(one)
		if err := m.Store.Write(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// steps is a batch of a mortal.
type steps struct{ rows, pointers []func(kv.Batch) }

func (s *steps) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	partition, value = bytes.Clone(partition), bytes.Clone(value)
	s.rows = append(s.rows, func(to kv.Batch) { to.Put(t, partition, sort, value) })
}

func (s *steps) Delete(t *kv.Table, partition []byte, sort uint64) {
	partition = bytes.Clone(partition)
	s.rows = append(s.rows, func(to kv.Batch) { to.Delete(t, partition, sort) })
}

func (s *steps) DeleteRange(t *kv.Table, partition []byte, from, to uint64) {
	partition = bytes.Clone(partition)
	s.rows = append(s.rows, func(b kv.Batch) { b.DeleteRange(t, partition, from, to) })
}

func (s *steps) SetPointer(name string, value []byte) {
	value = bytes.Clone(value)
	s.pointers = append(s.pointers, func(to kv.Batch) { to.SetPointer(name, value) })
}

func (s *steps) Rows() int  { return len(s.rows) + len(s.pointers) }
func (s *steps) Bytes() int { return s.Rows() }
func (s *steps) Reset()     { *s = steps{} }

// process is a network between two ends of its process.
type process struct {
	t *testing.T
	*Follower
}

// start opens the network in a store, which ends after a number of steps.
func start(t *testing.T, under kv.Store, left int, depth uint64) (*process, *mortal) {
	t.Helper()
	store := newMortal(under, left)
	f := openFollower(t, store, depth)
	return &process{t, f}, store
}

// append appends blocks until the process ends, and returns how many it acknowledged.
func (p *process) append(blocks []*starknet.Block) int {
	p.t.Helper()
	for i, block := range blocks {
		if err := p.Append(p.t.Context(), block); errors.Is(err, kvtest.ErrCrash) {
			return i
		} else if err != nil {
			p.t.Fatalf("block %d: %v", block.Number, err)
		}
	}
	return len(blocks)
}

// checkAnswers compares what a network answers with its blocks.
func (p *process) checkAnswers(blocks []*starknet.Block) {
	p.t.Helper()
	ctx, view := p.t.Context(), query.NewChain(p.archive, p.Tip).View()
	if got, want := view.Span(), (archive.Span{First: blocks[0].Number, Last: blocks[len(blocks)-1].Ref()}); got != want {
		p.t.Fatalf("it has the blocks %+v, expected %+v", got, want)
	}
	var want []string
	contracts := map[starknet.Felt][]string{}
	for _, block := range blocks {
		if number, err := view.FindBlock(ctx, block.Hash); err != nil || number != block.Number {
			p.t.Errorf("block %s is found at %d, %v", block.Ref(), number, err)
		}
		for i := range block.Transactions {
			sent := &block.Transactions[i]
			if receipt, err := view.FindReceipt(ctx, sent.Hash); err != nil || receipt.Block.Hash != block.Hash || receipt.EventCount != uint64(len(sent.Receipt.Events)) {
				p.t.Errorf("transaction %d of block %s: %+v, %v", i, block.Ref(), receipt, err)
			}
			for index := range sent.Receipt.Events {
				event, from := fmt.Sprintf("%s/%d/%d", block.Hash, i, index), sent.Receipt.Events[index].From
				want, contracts[from] = append(want, event), append(contracts[from], event)
			}
		}
	}
	check := func(filter *query.Filter, want []string) {
		p.t.Helper()
		var got []string
		whole := paging.Range{Begin: paging.Place{Block: blocks[0].Number}, To: view.Span().Last.Number, Size: 10_000}
		_, err := view.EventPage(ctx, filter, whole, func(e *query.Event) error {
			got = append(got, fmt.Sprintf("%s/%d/%d", e.BlockHash, e.Transaction, e.Index))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			p.t.Errorf("%d events of %v, %v; expected %d", len(got), filter.From, err, len(want))
		}
	}
	check(&query.Filter{}, want)
	for contract, want := range contracts {
		check(&query.Filter{From: []starknet.Felt{contract}}, want)
	}
}

// settled returns the rows of a network's settled blocks.
func (p *process) settled() map[string]string {
	p.t.Helper()
	found := map[string]string{}
	for _, table := range archive.Tables() {
		for row, err := range p.store.Walk(p.t.Context(), table, 0) {
			if err != nil {
				p.t.Fatal(err)
			}
			found[fmt.Sprintf("%s %x %d", table.Name, row.Partition, row.Sort)] = string(row.Value)
		}
	}
	return found
}

// checkRows compares the rows of settled blocks with those of a network that never ended.
func (p *process) checkRows(blocks []*starknet.Block) {
	p.t.Helper()
	whole, _ := start(p.t, newUnder(p.t), -1, settleDepth)
	whole.append(blocks)
	got, want := p.settled(), whole.settled()
	for row, value := range want {
		if got[row] != value {
			p.t.Errorf("row %s: %x, expected %x", row, got[row], value)
		}
		delete(got, row)
	}
	for row := range got {
		p.t.Errorf("row %s is left over", row)
	}
}

func newUnder(t *testing.T) kv.Store {
	t.Helper()
	under, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { under.Close() })
	if _, err := archive.Create(t.Context(), newMortal(under, -1), "SN_TEST"); err != nil {
		t.Fatal(err)
	}
	return under
}

// smallBlocks makes a chain of 12 blocks with few events.
func smallBlocks() (blocks []*starknet.Block) {
	options := synthetic.Default()
	options.First, options.Transactions, options.Contracts = 5, 2, 3
	for made := synthetic.New(options); len(blocks) < 12; {
		blocks = append(blocks, made.Next())
	}
	return blocks
}

// reorganized returns a chain that shares the first blocks with another. Above them, it has that chain's transactions
// in reverse order, without the last of each block.
func reorganized(blocks []*starknet.Block, shared int) []*starknet.Block {
	other := slices.Clone(blocks[:shared])
	for _, block := range blocks[shared:] {
		next := *block
		next.Parent = other[len(other)-1].Hash
		next.Hash = synthetic.Hash(append([]byte("reorganized"), block.Hash[:]...))
		next.Transactions = slices.Clone(block.Transactions[min(1, len(block.Transactions)):])
		slices.Reverse(next.Transactions)
		other = append(other, &next)
	}
	return other
}

// several is how many blocks are there before one block more settles several at once.
const several = 7

// newUnsettled makes a store with the first blocks of a chain, of which only the very first is settled.
func newUnsettled(t *testing.T, blocks []*starknet.Block) kv.Store {
	t.Helper()
	under := newUnder(t)
	deep, _ := start(t, under, -1, 1000)
	deep.append(blocks[:several])
	return under
}

// crashed ends a process after a number of steps while it settles several blocks and then one more, and opens the
// network again. It returns false if that number is not reached.
func crashed(t *testing.T, blocks []*starknet.Block, steps int) (*process, bool) {
	t.Helper()
	under := newUnsettled(t, blocks)
	p, store := start(t, under, steps, settleDepth)
	acknowledged := several + p.append(blocks[several:several+2])
	reached := store.left == 0
	again, _ := start(t, under, -1, settleDepth)
	_, head, _, err := again.Held(t.Context())
	held := int(head.Number-blocks[0].Number) + 1
	if err != nil || held < acknowledged || held > acknowledged+1 {
		t.Fatalf("it has %d blocks, %v; %d were acknowledged", held, err, acknowledged)
	}
	again.checkAnswers(blocks[:held])
	return again, reached
}

// TestEndWhileSettling ends the process of a network after each step of its writes while it settles blocks, in a store
// that does not apply a batch at once. The network answers with all acknowledged blocks, and goes on with the same
// chain or with another one, as if its process had not ended.
func TestEndWhileSettling(t *testing.T) {
	raced.Skip(t)
	blocks := smallBlocks()
	for steps, more := 0, true; more; steps++ {
		more = false
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			same, reached := crashed(t, blocks, steps)
			more = reached
			_, head, _, _ := same.Held(t.Context())
			same.append(blocks[head.Number-blocks[0].Number+1:])
			same.checkAnswers(blocks)
			same.checkRows(blocks)

			other, _ := crashed(t, blocks, steps)
			settled := other.archive.Span().Last
			fork := int(settled.Number-blocks[0].Number) + 1
			others := reorganized(blocks, fork)
			if err := other.Revert(t.Context(), settled); err != nil {
				t.Fatal(err)
			}
			other.append(others[fork:])
			other.checkAnswers(others)
			other.checkRows(others)
		})
	}
}

// TestEndWhileReplacing ends the process of a network a second time, after each step of its writes while another chain
// takes the place of blocks whose rows the first end left.
func TestEndWhileReplacing(t *testing.T) {
	raced.Skip(t)
	const midway = 50 // rows of several blocks are there, the settled pointer is not
	blocks := smallBlocks()
	others := reorganized(blocks, 1)
	isOf := func(chain []*starknet.Block, ref chain.Ref) bool {
		return chain[ref.Number-chain[0].Number].Ref() == ref
	}
	for steps, more := 0, true; more; steps++ {
		more = false
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			p, _ := crashed(t, blocks, midway)
			if span := p.archive.Span(); span.Last != blocks[0].Ref() {
				t.Fatalf("settled is %s, expected %s", span.Last, blocks[0].Ref())
			}
			store := p.store.(*mortal)
			store.left = steps
			acknowledged := 1
			err := p.Revert(t.Context(), blocks[0].Ref())
			if err == nil {
				acknowledged += p.append(others[1 : len(others)-1])
			} else if !errors.Is(err, kvtest.ErrCrash) {
				t.Fatal(err)
			}
			more = store.left == 0

			again, _ := start(t, store.Store, -1, settleDepth)
			_, head, _, err := again.Held(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if acknowledged == 1 && !isOf(others, head) { // it was not reverted
				again.checkAnswers(blocks[:head.Number-blocks[0].Number+1])
				if err := again.Revert(t.Context(), blocks[0].Ref()); err != nil {
					t.Fatal(err)
				}
				head = blocks[0].Ref()
			}
			held := int(head.Number-blocks[0].Number) + 1
			if held < acknowledged || held > acknowledged+1 {
				t.Fatalf("it has %d blocks, %d were acknowledged", held, acknowledged)
			}
			again.checkAnswers(others[:held])
			again.append(others[held:])
			again.checkAnswers(others)
			again.checkRows(others)
		})
	}
}
