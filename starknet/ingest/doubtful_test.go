package ingest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

// settlingWrite is the write with the rows of settled blocks: after those that add a block and make it the head, and that of
// the pointer settling.
const settlingWrite = 4

// doubted is a network of whose writes one fails although it may have been applied. Its process goes on.
type doubted struct {
	*process
	doubtful *kvtest.Doubtful
	tried    []chain.Ref // heads that were not acknowledged since the last one that was
}

// openDoubted opens the network in a store.
func openDoubted(t *testing.T, under kv.Store) *doubted {
	t.Helper()
	store := kvtest.NewDoubtful(under)
	f := openFollower(t, store, settleDepth)
	return &doubted{process: &process{t, f}, doubtful: store}
}

// head returns the block that clients see as the head.
func (d *doubted) head() chain.Ref {
	d.t.Helper()
	_, head, _, err := d.Held(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return head
}

// try makes a block the head. It does that again if it fails with the doubtful write and the block is not the head.
func (d *doubted) try(to chain.Ref, do func() error) error {
	d.t.Helper()
	d.tried = append(d.tried, to)
	err := do()
	if errors.Is(err, kvtest.ErrDoubtful) {
		if err = nil; d.head() != to {
			err = do()
		}
	}
	if err == nil {
		d.tried = nil
	}
	return err
}

func (d *doubted) extend(blocks []*starknet.Block) error {
	d.t.Helper()
	for _, block := range blocks {
		if err := d.try(block.Ref(), func() error { return d.Append(d.t.Context(), block) }); err != nil {
			return err
		}
	}
	return nil
}

// replace reverts as many blocks as can be, and appends others.
func (d *doubted) replace(blocks []*starknet.Block) error {
	d.t.Helper()
	fork := 1
	revert := func() error {
		to := blocks[fork-1].Ref()
		return d.try(to, func() error { return d.Revert(d.t.Context(), to) })
	}
	err := revert()
	if errors.Is(err, ErrTooDeep) {
		fork = int(d.archive.Span().Last.Number-blocks[0].Number) + 1
		err = revert()
	}
	if err != nil {
		return err
	}
	return d.extend(reorganized(blocks, fork)[fork:])
}

// chain returns the chain that the network follows, which forks from blocks or is blocks.
func (d *doubted) chain(blocks []*starknet.Block) []*starknet.Block {
	d.t.Helper()
	head := d.head()
	fork := 0
	for fork < len(blocks) && blocks[fork].Number <= head.Number {
		if hash, err := d.Hash(d.t.Context(), blocks[fork].Number); err != nil {
			d.t.Fatal(err)
		} else if hash != common.Hash(blocks[fork].Hash) {
			return reorganized(blocks, fork)
		}
		fork++
	}
	return blocks
}

// check compares what is stored, and what the process answers, with the chain that the network follows. Blocks are settled
// first if the write that failed was the last one.
func (d *doubted) check(blocks []*starknet.Block) {
	d.t.Helper()
	if err := d.settle(d.t.Context(), d.Tip()); err != nil {
		d.t.Fatal(err)
	}
	chain := d.chain(blocks)
	d.checkAnswers(chain)
	d.checkRows(chain)
}

// TestDoubtfulWrite fails each write in turn, of a network that settles blocks, then reverts as many as can be and follows
// another chain. The write may have been applied, in whole or in part. The process goes on, to the end or until it ends
// after each piece of its later writes, when another one goes on. What is stored and what is answered is one chain, and an
// acknowledged head stays.
func TestDoubtfulWrite(t *testing.T) {
	raced.Skip(t)
	blocks := smallBlocks()
	live := func(t *testing.T, under kv.Store, how kvtest.Outcome, fail, end int) *doubted {
		d := openDoubted(t, under)
		d.doubtful.Fail, d.doubtful.How, d.doubtful.Further = fail, how, end
		err := d.extend(blocks[several : several+1])
		if err == nil {
			err = d.replace(blocks)
		}
		if err != nil && !errors.Is(err, kvtest.ErrCrash) {
			t.Fatal(err)
		}
		return d
	}
	for how := range kvtest.Outcomes {
		for fail, more := 1, true; more; fail++ {
			more = false
			t.Run(fmt.Sprintf("%s/%d", how, fail), func(t *testing.T) {
				under := newUnsettled(t, blocks)
				d := live(t, under, how, fail, -1)
				more = d.doubtful.Fail == 0
				d.check(blocks)
				openDoubted(t, under).check(blocks)
			})
		}
		for fail := 1; fail <= 6; fail++ { // of the block that settles others, and the one that reverts blocks
			if how != kvtest.Applied && (fail != settlingWrite || how == kvtest.Refused) {
				continue // as if the process had ended before
			}
			for end, more := 0, true; more; end++ {
				more = false
				t.Run(fmt.Sprintf("%s/%d/%d", how, fail, end), func(t *testing.T) {
					under := newUnsettled(t, blocks)
					before := live(t, under, how, fail, end)
					more = before.doubtful.Ended()

					d := openDoubted(t, under)
					head := d.head()
					if head != before.head() && !slices.Contains(before.tried, head) {
						t.Errorf("the head is %s, acknowledged was %s", head, before.head())
					}
					chain := d.chain(blocks)
					d.checkAnswers(chain[:head.Number-blocks[0].Number+1])
					var err error
					if chain[len(chain)-1].Hash == blocks[len(blocks)-1].Hash {
						err = d.replace(blocks)
					} else {
						err = d.extend(chain[head.Number-blocks[0].Number+1:])
					}
					if err != nil {
						t.Fatal(err)
					}
					d.check(blocks)
				})
			}
		}
	}
}
