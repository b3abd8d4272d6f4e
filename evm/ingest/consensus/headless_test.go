package consensus_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/consensus"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/core/types"
)

const (
	headlessDepth = 4
	headlessMost  = headlessDepth + 64 // unsettled blocks, with as many as are settled in one write
)

// sendWithoutHead sends blocks of which the client names none as the head. Those that fit in the tip are valid, and the others are
// accepted.
func (d *driven) sendWithoutHead(blocks []*types.Block) {
	d.t.Helper()
	for _, block := range blocks {
		if at := block.NumberU64() - d.Forkchoice().Head.Settled().Number; at <= headlessMost {
			d.expect("a block "+ref(block).String(), d.send(block), engine.Valid, block)
		} else {
			d.expect("a block far above the head "+ref(block).String(), d.send(block), engine.Accepted, nil)
		}
		if got := d.Tip.Len(); got > headlessMost {
			d.t.Fatalf("block %d: %d blocks are in the tip, expected at most %d", block.NumberU64(), got, headlessMost)
		}
	}
}

// TestBlocksWithoutAHead: blocks far above the head wait until the client names a head: one that was executed, or one of
// those that wait.
func TestBlocksWithoutAHead(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 240, 1)
	for name, named := range map[string]int{"an executed block": headlessMost - 1, "a block that waits": 149} {
		t.Run(name, func(t *testing.T) {
			d := newDriven(t, ingest.Depths{Unfinalized: headlessDepth, Most: headlessDepth})
			log := new(bytes.Buffer)
			d.chain = consensus.New(d.Follower.Follower, nil, slog.New(slog.NewTextHandler(log, nil)))
			d.mustTell(d.Genesis, nil, nil)
			d.sendWithoutHead(blocks[:200])
			d.mustTell(d.Genesis, nil, nil) // the old head, again
			d.sendWithoutHead(blocks[180:200])
			if got := strings.Count(log.String(), "they wait"); got != 1 {
				t.Errorf("the log has %d lines of blocks above the head, expected 1: %s", got, log)
			}
			if sync, ok := d.chain.Sync(); !ok || sync != (consensus.Sync{Highest: 200}) {
				t.Errorf("the way to the blocks that wait is %+v, %v", sync, ok)
			}

			d.mustTell(blocks[named], nil, nil)
			if sync, ok := d.chain.Sync(); ok {
				t.Errorf("the way is %+v after the client has named a head", sync)
			}
			for _, block := range blocks[200:] { // each is sent once, and named
				d.send(block)
				if status, err := d.tell(block, nil, nil); err != nil || status.Verdict != engine.Valid {
					t.Fatalf("head %d: %+v, %v", block.NumberU64(), status, err)
				}
			}
			if got := d.Tip.Len(); got > headlessMost {
				t.Errorf("%d blocks are in the tip, expected at most %d", got, headlessMost)
			}
		})
	}
}

// TestBlocksWithoutAHeadAreFetched: if more blocks have come before the client names a head than may wait, the others are fetched.
func TestBlocksWithoutAHeadAreFetched(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 400, 1)
	s := newSupplied(t, ingest.Depths{Unfinalized: headlessDepth, Most: headlessDepth}, startNode(t, nil, b.Genesis, blocks...))
	for _, block := range blocks {
		if status := s.send(block); status.Verdict == engine.Invalid {
			t.Fatalf("block %d: %+v", block.NumberU64(), status)
		}
	}
	if got := s.Tip.Len(); got != headlessMost {
		t.Errorf("%d blocks are in the tip, expected %d", got, headlessMost)
	}
	status, err := s.tell(blocks[399], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.expect("the head, whose ancestors are forgotten", status, engine.Syncing, nil)
	s.await(blocks[399])
}

// TestManyBranches: neither a long branch of which the client names no block, nor many blocks with one parent keep those of the head's
// branch from being executed.
func TestManyBranches(t *testing.T) {
	b := builder(t)
	trunk, aside := b.grow(b.Genesis, 30, 1), b.grow(b.Genesis, 2*headlessMost, 2)
	d := newDriven(t, ingest.Depths{Unfinalized: headlessDepth, Most: headlessDepth})
	d.sendWithoutHead(aside)
	for _, block := range trunk {
		d.expect("a block of the head's branch", d.send(block), engine.Valid, block)
		d.mustTell(block, nil, nil)
		for salt := range uint64(4) {
			sibling := b.grow(block, 1, 100+salt)[0]
			d.expect("one of many siblings", d.send(sibling), engine.Valid, sibling)
		}
		if got, most := d.Tip.Len(), 2*headlessDepth+64; got > most {
			t.Fatalf("%d blocks are in the tip, expected at most %d", got, most)
		}
	}
}
