package ingest_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/core/types"
)

// doubted is a network of whose writes one fails although it may have been applied. Its process goes on.
type doubted struct {
	*followed
	doubtful *kvtest.Doubtful
	below    kv.Store
	head     chain.Ref // the last one that was acknowledged
	next     chain.Ref // the one that was to follow it
}

const (
	doubtedShared = 4 // blocks of both chains
	doubtedDepth  = 2
	doubtedBlocks = 3 // of the left chain that are settled by the writes that fail
	// settlingWrite is the one with their rows. Before it, each was added and made the head, and the pointer settling set.
	settlingWrite = 2*doubtedBlocks + 2
)

func newDoubted(t *testing.T, left []*types.Block) *doubted {
	t.Helper()
	genesis, _ := ingesttest.Crossing(t)
	f := &followed{target: newTargetOf(t, genesis), depths: ingest.Depths{Unfinalized: doubtedDepth, Most: 100}}
	d := &doubted{followed: f, below: f.store}
	d.doubtful = kvtest.NewDoubtful(f.store)
	f.store = d.doubtful
	f.restart()
	f.follow(left[:doubtedShared+doubtedDepth]...)
	d.head = ref(left[doubtedShared+doubtedDepth-1])
	if err := f.follower.SettleDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// insist does something again if it fails with the doubtful write. It returns an error that says that the process
// has ended, or that the block is not on a branch of the tip.
func (d *doubted) insist(do func() error) error {
	d.t.Helper()
	err := do()
	if errors.Is(err, kvtest.ErrDoubtful) {
		err = do()
	}
	if err != nil && !errors.Is(err, kvtest.ErrCrash) && !errors.Is(err, tip.ErrUnknownParent) && !errors.Is(err, tip.ErrUnknownBlock) {
		d.t.Fatal(err)
	}
	return err
}

// extend adds blocks. If each is set, it makes each the head, otherwise the last.
func (d *doubted) extend(each bool, blocks ...*types.Block) error {
	d.t.Helper()
	for i, block := range blocks {
		if err := d.insist(func() error { return d.follower.Add(d.t.Context(), block) }); err != nil {
			return err
		}
		if !each && i < len(blocks)-1 {
			continue
		}
		d.next = ref(block)
		if err := d.insist(func() error {
			return d.follower.SetHead(d.t.Context(), block.Hash(), chain.Ref{}, chain.Ref{})
		}); err != nil {
			return err
		}
		d.head = ref(block)
	}
	return nil
}

// live follows the left chain, settles blocks once, whether that fails or not, and then follows the right chain, or the
// left one if what is settled does not allow that.
func (d *doubted) live(left, right []*types.Block) error {
	d.t.Helper()
	if err := d.extend(true, left[doubtedShared+doubtedDepth:doubtedShared+doubtedDepth+doubtedBlocks]...); err != nil {
		return err
	}
	if err := d.follower.SettleDue(d.t.Context()); err != nil && !errors.Is(err, kvtest.ErrDoubtful) {
		return err
	}
	return d.finish(left, right)
}

// finish follows the right chain, or the left one if what is settled does not allow that, to its end.
func (d *doubted) finish(left, right []*types.Block) error {
	d.t.Helper()
	settled, _ := d.archive.Settled()
	chain := right
	if ref(right[settled.Number-1]) != settled {
		chain = left
	}
	const most = doubtedShared + 6 // blocks before some settle
	err := d.extend(false, chain[min(settled.Number, most):most]...)
	if now, _ := d.archive.Settled(); now != settled && (errors.Is(err, tip.ErrUnknownParent) || errors.Is(err, tip.ErrUnknownBlock)) {
		return d.finish(left, right)
	}
	if err != nil {
		return err
	}
	if err := d.insist(func() error { return d.follower.SettleDue(d.t.Context()) }); err != nil {
		return err
	}
	if err := d.extend(true, chain[max(settled.Number, most):]...); err != nil {
		return err
	}
	return d.insist(func() error { return d.follower.SettleDue(d.t.Context()) })
}

// check compares everything that is settled with what is settled of the same chain that was imported, in the store and
// as the process reads it.
func (d *doubted) check(chains ...[]*types.Block) {
	d.t.Helper()
	settled, _ := d.archive.Settled()
	for _, chain := range chains {
		if ref(chain[settled.Number-1]) != settled {
			continue
		}
		checkRows(d.t, d.target, chain[:settled.Number])
		d.checkCached()
		return
	}
	d.t.Errorf("settled is %s, which is of no chain", settled)
}

// checkCached compares the newest state that the process reads with that of the store.
func (d *doubted) checkCached() {
	d.t.Helper()
	settled, _ := d.archive.Settled()
	tables := archive.NamedTables()
	for _, table := range []*kv.Table{tables.Accounts, tables.Slots} {
		for row, err := range d.below.Walk(d.t.Context(), table, 0) {
			if err != nil {
				d.t.Fatal(err)
			}
			got, since, err := d.archive.Rows().Newest(d.t.Context(), table, row.Partition, settled.Number, nil)
			want, wantSince, wantErr := d.below.Newest(d.t.Context(), table, row.Partition, settled.Number, nil)
			if !errors.Is(err, wantErr) || since != wantSince || !bytes.Equal(got, want) {
				d.t.Errorf("table %s, partition %x: %x of block %d, %v; in the store is %x of block %d, %v", table.Name, row.Partition, got, since, err, want, wantSince, wantErr)
			}
		}
	}
}

// reopened opens the network anew in what is stored, and expects the head that was acknowledged last, or the one that
// was about to be.
func (d *doubted) reopened() {
	d.t.Helper()
	d.doubtful = kvtest.NewDoubtful(d.below)
	d.store = d.doubtful
	d.restart()
	if head := d.tip.Forkchoice().Head.Ref(); head != d.head && head != d.next {
		d.t.Errorf("the head is %s, acknowledged was %s", head, d.head)
	}
}

// TestDoubtfulWrite fails each write in turn, of a network that settles blocks and then follows another chain. The write
// may have been applied, in whole or in part. The process goes on. What is stored and what the process reads is one chain.
func TestDoubtfulWrite(t *testing.T) {
	raced.Skip(t)
	_, left := ingesttest.Crossing(t)
	right := ingesttest.Diverging(t, doubtedShared)
	for how := range kvtest.Outcomes {
		for fail, more := 1, true; more; fail++ {
			more = false
			t.Run(fmt.Sprintf("%s/%d", how, fail), func(t *testing.T) {
				d := newDoubted(t, left)
				d.doubtful.Fail, d.doubtful.How = fail, how
				if err := d.live(left, right); err != nil {
					t.Fatal(err)
				}
				more = d.doubtful.Fail == 0
				d.check(left, right)
				d.reopened()
				d.check(left, right)
			})
		}
	}
}

// TestEndAfterDoubtfulWrite is TestDoubtfulWrite for the write that settles blocks. The process ends after each piece of
// its later writes, and another one goes on. An acknowledged head stays.
func TestEndAfterDoubtfulWrite(t *testing.T) {
	raced.Skip(t)
	_, left := ingesttest.Crossing(t)
	right := ingesttest.Diverging(t, doubtedShared)
	for _, how := range []kvtest.Outcome{kvtest.Begun, kvtest.Applied, kvtest.Late} {
		for end, more := 0, true; more; end++ {
			more = false
			t.Run(fmt.Sprintf("%s/%d", how, end), func(t *testing.T) {
				d := newDoubted(t, left)
				d.doubtful.Fail, d.doubtful.How, d.doubtful.Further = settlingWrite, how, end
				if err := d.live(left, right); err != nil && !errors.Is(err, kvtest.ErrCrash) {
					t.Fatal(err)
				}
				more = d.doubtful.Ended()
				d.reopened()
				if err := d.finish(left, right); err != nil {
					t.Fatal(err)
				}
				d.check(left, right)
			})
		}
	}
}
