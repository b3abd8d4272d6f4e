package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// model is a naive model of the answers that a consensus client may expect.
type model struct {
	genesis *types.Block
	bad     map[common.Hash]bool         // breaks a rule
	sent    map[common.Hash]*types.Block // sent so far
	valid   map[common.Hash]*types.Block
	invalid map[common.Hash]common.Hash // mapped to the last valid ancestor
}

// status returns the expected status of a block that is sent or named as the head.
func (m *model) status(block *types.Block) (engine.Verdict, common.Hash) {
	hash := block.Hash()
	if last, ok := m.invalid[hash]; ok {
		return engine.Invalid, last
	}
	if m.valid[hash] != nil {
		return engine.Valid, hash
	}
	if m.sent[hash] == nil {
		return engine.Syncing, common.Hash{}
	}
	parent := m.sent[block.ParentHash()]
	if block.ParentHash() == m.genesis.Hash() {
		parent = m.genesis
	}
	if parent == nil {
		return engine.Syncing, common.Hash{}
	}
	verdict, last := m.status(parent)
	switch {
	case verdict == engine.Valid && m.bad[hash]:
		m.invalid[hash] = parent.Hash()
		return engine.Invalid, parent.Hash()
	case verdict == engine.Valid:
		m.valid[hash] = block
		return engine.Valid, hash
	case verdict == engine.Invalid:
		m.invalid[hash] = last
	}
	return verdict, last
}

// TestAnyOrder sends the blocks of a tree, some of them invalid, in any order and
// repeatedly, and names heads in between. The answers always equal the model's, and the
// head is the last valid one.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 3))
			b := builder(t)
			m := &model{
				genesis: b.Genesis, bad: make(map[common.Hash]bool), sent: make(map[common.Hash]*types.Block),
				valid: map[common.Hash]*types.Block{b.Genesis.Hash(): b.Genesis}, invalid: make(map[common.Hash]common.Hash),
			}
			tree := []*types.Block{b.Genesis}
			for salt := range uint64(8) {
				tree = append(tree, b.grow(tree[random.IntN(len(tree))], 1+random.IntN(6), 1+salt)...)
			}
			for _, block := range tree[1:] {
				if random.IntN(10) > 0 {
					continue
				}
				wrong := broken(block)
				m.bad[wrong.Hash()] = true
				tree = append(tree, wrong)
				for range random.IntN(3) {
					wrong = upon(wrong, tree[1+random.IntN(len(tree)-1)])
					tree = append(tree, wrong)
				}
			}
			d := newDriven(t, ingest.Depths{Unfinalized: 1000, Most: 1000})
			head := d.Genesis
			for range 4 * len(tree) {
				block := tree[1+random.IntN(len(tree)-1)]
				var got engine.Status
				what := fmt.Sprintf("block %s", ref(block))
				if random.IntN(4) > 0 {
					m.sent[block.Hash()] = block
					got = d.send(block)
				} else {
					what += " as head"
					var err error
					if got, err = d.tell(block, nil, nil); err != nil {
						t.Fatal(err)
					}
					if got.Verdict == engine.Valid {
						head = block
					}
				}
				verdict, last := m.status(block)
				if got.Verdict != verdict || (verdict == engine.Syncing) != (got.LatestValid == nil) || got.LatestValid != nil && *got.LatestValid != last {
					t.Fatalf("%s: %+v, expected %s with %#x", what, got, verdict, last)
				}
				if at := d.Forkchoice().Head.Ref(); at != ref(head) {
					t.Fatalf("the head is %s, expected %s", at, ref(head))
				}
			}
			if len(m.valid) < 5 {
				t.Errorf("only %d blocks were valid", len(m.valid))
			}
		})
	}
}

func TestForkchoiceRules(t *testing.T) {
	b := builder(t)
	trunk := b.grow(b.Genesis, 6, 1)
	left, right := b.grow(trunk[5], 4, 2), b.grow(trunk[5], 4, 3)
	early := b.grow(trunk[1], 3, 4)
	d := newDriven(t, ingest.Depths{Unfinalized: 1000, Most: 1000})
	for _, list := range [][]*types.Block{trunk, left, right, early} {
		for _, block := range list {
			d.expect("a right block", d.send(block), engine.Valid, block)
		}
	}
	d.mustTell(left[3], nil, nil)
	if s := d.Forkchoice(); s.Safe != (chain.Ref{}) || s.Finalized != (chain.Ref{}) {
		t.Errorf("safe is %s, finalized %s, but neither was set", s.Safe, s.Finalized)
	}
	for _, test := range []struct {
		what                  string
		head, safe, finalized *types.Block
		want                  error
	}{
		{"safe on another branch", left[2], right[0], nil, engine.ErrInconsistent},
		{"finalized on another branch", left[2], left[1], right[0], engine.ErrInconsistent},
		{"safe above the head", left[2], left[3], nil, engine.ErrInconsistent},
		{"finalized that is not known", left[2], nil, broken(left[1]), engine.ErrInconsistent},
	} {
		if _, err := d.tell(test.head, test.safe, test.finalized); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, expected %v", test.what, err, test.want)
		}
		if head := d.Forkchoice().Head.Ref(); head != ref(left[3]) {
			t.Errorf("%s: the head has moved to %s", test.what, head)
		}
	}
	forkchoice := func(what string, head, safe, finalized *types.Block) {
		t.Helper()
		if s := d.Forkchoice(); s.Head.Ref() != ref(head) || s.Safe != ref(safe) || s.Finalized != ref(finalized) {
			t.Errorf("%s: head %s, safe %s, finalized %s", what, s.Head.Ref(), s.Safe, s.Finalized)
		}
	}
	d.mustTell(left[3], left[1], trunk[3])
	forkchoice("all are set", left[3], left[1], trunk[3])
	d.mustTell(left[2], nil, nil)
	forkchoice("an older head, nothing else set", left[2], left[1], trunk[3])
	d.mustTell(right[3], nil, nil)
	forkchoice("what was safe is left", right[3], trunk[3], trunk[3])
	d.mustTell(right[3], right[0], trunk[1])
	forkchoice("finalized goes back", right[3], right[0], trunk[3])
	d.mustTell(right[3], trunk[0], trunk[4])
	forkchoice("safe below finalized", right[3], trunk[4], trunk[4])
	d.mustTell(trunk[2], nil, nil)
	forkchoice("an ancestor of what is final is passed over", right[3], trunk[4], trunk[4])
	d.mustTell(trunk[4], nil, nil)
	forkchoice("what is final is the head", trunk[4], trunk[4], trunk[4])
	if _, err := d.tell(early[2], nil, nil); !errors.Is(err, engine.ErrTooDeep) {
		t.Errorf("a head that leaves what is final: %v", err)
	}
	if status, err := d.tell(nil, nil, nil); err != nil || status.Verdict != engine.Invalid {
		t.Errorf("no head: %+v, %v", status, err)
	}
	forkchoice("what could not be followed", trunk[4], trunk[4], trunk[4])
}

// Blocks that fork off below the settled block can no longer be executed.
func TestAccepted(t *testing.T) {
	b := builder(t)
	trunk := b.grow(b.Genesis, 12, 1)
	aside := b.grow(trunk[1], 3, 2)
	d := newDriven(t, ingest.Depths{Unfinalized: 4, Most: 4})
	for _, block := range trunk {
		d.expect("a right block", d.send(block), engine.Valid, block)
		d.mustTell(block, nil, nil)
	}
	d.settle(8)
	d.expect("a block beside the settled ones", d.send(aside[0]), engine.Accepted, nil)
	d.expect("the next", d.send(aside[1]), engine.Accepted, nil)
	d.expect("an invalid one, which cannot be checked", d.send(broken(aside[2])), engine.Accepted, nil)
	d.expect("a settled block", d.send(trunk[2]), engine.Valid, trunk[2])
	for _, block := range []*types.Block{aside[1], trunk[2]} {
		if _, err := d.tell(block, nil, nil); !errors.Is(err, engine.ErrTooDeep) {
			t.Errorf("head %s: %v", ref(block), err)
		}
	}
	d.mustTell(trunk[7], nil, nil) // the settled block itself
}

// A branch below the settled block is recognized to its end, however long it is, and takes no place
// of blocks that wait.
func TestAcceptedBranchIsLong(t *testing.T) {
	b := builder(t)
	trunk := b.grow(b.Genesis, 12, 1)
	aside := b.grow(trunk[1], 170, 2)
	d := newDriven(t, ingest.Depths{Unfinalized: 4, Most: 4})
	for _, block := range trunk[:11] {
		d.expect("a right block", d.send(block), engine.Valid, block)
		d.mustTell(block, nil, nil)
	}
	d.settle(7)
	next := b.grow(trunk[11], 2, 1)
	d.expect("a block without its parent", d.send(next[0]), engine.Syncing, nil)
	d.expect("a block beside the settled ones, without its parent", d.send(aside[2]), engine.Syncing, nil)
	for _, block := range aside {
		d.expect("a block beside the settled ones", d.send(block), engine.Accepted, nil)
	}
	d.expect("the first again", d.send(aside[0]), engine.Accepted, nil)
	for _, block := range []*types.Block{aside[0], aside[2], aside[len(aside)-1]} {
		if _, err := d.tell(block, nil, nil); !errors.Is(err, engine.ErrTooDeep) {
			t.Errorf("head %s: %v", ref(block), err)
		}
	}
	d.expect("the parent of the block that waits", d.send(trunk[11]), engine.Valid, trunk[11])
	d.mustTell(next[0], nil, nil)
}

// settle runs the follower until it has settled a block.
func (d *driven) settle(number uint64) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	for d.Forkchoice().Head.Settled().Number < number {
		select {
		case err := <-done:
			d.t.Fatalf("the follower ended: %v", err)
		default:
		}
	}
	stop()
	if err := <-done; err != nil {
		d.t.Fatal(err)
	}
}

// The number of waiting blocks is bounded: the oldest are evicted.
func TestWaitingIsBounded(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 170, 1)
	d := newDriven(t, ingest.Depths{Unfinalized: 1000, Most: 1000})
	for _, block := range blocks[1:] {
		d.expect("a block without its parent", d.send(block), engine.Syncing, nil)
	}
	d.expect("the first", d.send(blocks[0]), engine.Valid, blocks[0])
	last := blocks[len(blocks)-1]
	status, err := d.tell(last, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.expect("the head, whose ancestors are forgotten", status, engine.Syncing, nil)
	for _, block := range blocks[1:20] {
		d.expect("sent again", d.send(block), engine.Valid, block)
	}
	d.mustTell(last, nil, nil) // the other blocks have waited
}

// The number of remembered invalid blocks is bounded; a forgotten one is found invalid
// again.
func TestInvalidAreBounded(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 2, 1)
	d := newDriven(t, ingest.Depths{Unfinalized: 1000, Most: 1000})
	d.expect("a right block", d.send(blocks[0]), engine.Valid, blocks[0])
	wrong := []*types.Block{broken(blocks[1])}
	for range 600 {
		wrong = append(wrong, upon(wrong[len(wrong)-1], blocks[1]))
	}
	for _, block := range wrong {
		status := d.send(block)
		d.expect("a block upon an invalid one", status, engine.Invalid, blocks[0])
		if len(status.Why) > 400 {
			t.Fatalf("the reason grows: %s", status.Why)
		}
	}
	d.expect("the first, once more", d.send(wrong[0]), engine.Invalid, blocks[0])
	d.expect("a right block beside it", d.send(blocks[1]), engine.Valid, blocks[1])
}
