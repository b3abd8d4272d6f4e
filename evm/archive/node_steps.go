package archive

import (
	"context"
	"errors"
	"hash/maphash"

	"ashlar/kv"
)

// wholeEvery is the number of blocks after which branches are stored whole again. So a row
// after such a boundary is the same bytes whatever is stored before the boundary: only the
// state there. With 2^20 blocks, 145 days of 12 seconds, few rows more are whole. Tests
// change it.
var wholeEvery uint64 = 1 << 20

// nodeSteps returns how the nodes changed by a block were stored before it.
type nodeSteps interface {
	// steps returns the number of rows from the newest row of a branch before a block down
	// to a whole one. It returns maxSteps if the block must store the branch whole.
	steps(key []byte, block uint64) (int, error)
	// wrote records the steps of the row that the block writes.
	wrote(key []byte, block uint64, steps int)
}

// storedSteps reads the rows of the state before the block.
type storedSteps struct {
	ctx    context.Context
	before State
}

func (s storedSteps) steps(key []byte, block uint64) (int, error) {
	var buffer [1 + 3 + (branchChildren+1)*childBytes]byte
	row, since, err := s.before.history.rows.Newest(s.ctx, trieNodes, key, s.before.number, buffer[:0])
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return maxSteps, nil
	case err != nil:
		return 0, err
	case since/wholeEvery != block/wholeEvery:
		return maxSteps, nil
	case len(row) > 0 && (row[0] == nodeWhole || row[0] == nodeBase):
		return 0, nil
	case len(row) > 0 && row[0] == nodeDifference:
		d, err := decodeDifference(row)
		return d.steps, err
	}
	return maxSteps, nil // no branch to differ from
}

// stepsOf returns the steps of the newest row of a node, 0 if it is not a branch.
func (s storedSteps) stepsOf(key []byte) (int, error) {
	row, _, err := s.before.history.rows.Newest(s.ctx, trieNodes, key, s.before.number, nil)
	if err != nil || len(row) == 0 || row[0] != nodeDifference {
		return 0, err
	}
	d, err := decodeDifference(row)
	return d.steps, err
}

func (s storedSteps) wrote([]byte, uint64, int) {}

// rememberedNodes is the number of nodes remembered per generation, about 30 bytes each.
const rememberedNodes = 500_000

// rememberedSteps caches the steps of recently written nodes for bulk appends: reading the
// row of every changed node would cost a tenth of an import. It has two generations. It is
// not safe for concurrent use.
type rememberedSteps struct {
	young, old map[nodeDigest]uint8
	seeds      [2]maphash.Seed
	stored     storedSteps
	period     uint64 // of wholeEvery blocks, that the rows are from
}

// nodeDigest stands for the key of a node. Keys would take three times the memory, and the
// collector would follow each. Digests have 128 bits with random seeds, so that those of a billion
// nodes are all different, but for one in 10²⁰ imports.
type nodeDigest [2]uint64

func (r *rememberedSteps) digest(key []byte) nodeDigest {
	return nodeDigest{maphash.Bytes(r.seeds[0], key), maphash.Bytes(r.seeds[1], key)}
}

// begin prepares for blocks that follow a state and are written together. Their steps are
// remembered at least until the next call.
func (r *rememberedSteps) begin(ctx context.Context, before State) {
	r.stored = storedSteps{ctx, before}
	if r.young == nil || len(r.young) > rememberedNodes {
		r.renew()
	}
}

// renew makes the young generation the old one.
func (r *rememberedSteps) renew() {
	if r.young == nil {
		r.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	r.young, r.old = make(map[nodeDigest]uint8, len(r.young)), r.young
}

// forget drops everything. It must be called if the store may not match what was recorded.
func (r *rememberedSteps) forget() { r.young, r.old = nil, nil }

// enter drops what is remembered of an earlier period.
func (r *rememberedSteps) enter(block uint64) {
	if period := block / wholeEvery; period != r.period {
		clear(r.young)
		r.old, r.period = nil, period
	}
}

func (r *rememberedSteps) steps(key []byte, block uint64) (int, error) {
	r.enter(block)
	digest := r.digest(key)
	if steps, ok := r.young[digest]; ok {
		return int(steps), nil
	}
	if steps, ok := r.old[digest]; ok {
		return int(steps), nil
	}
	return r.stored.steps(key, block)
}

func (r *rememberedSteps) wrote(key []byte, block uint64, steps int) {
	r.enter(block)
	r.young[r.digest(key)] = uint8(steps)
}
