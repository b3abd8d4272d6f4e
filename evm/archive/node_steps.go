package archive

import "context"

// nodeSteps returns how the nodes changed by a block were stored before it.
type nodeSteps interface {
	// steps returns the number of rows from the newest row of a branch down to a whole one.
	steps(key []byte) (int, error)
	// wrote records the steps of the row that the block writes.
	wrote(key []byte, steps int)
}

// storedSteps reads the rows of the state before the block.
type storedSteps struct {
	ctx    context.Context
	before State
}

func (s storedSteps) steps(key []byte) (int, error) {
	var buffer [1 + 3 + (branchChildren+1)*childBytes]byte
	row, _, err := s.before.newest(s.ctx, trieNodes, key, buffer[:0])
	switch {
	case err != nil:
		return 0, err
	case len(row) > 0 && row[0] == nodeWhole:
		return 0, nil
	case len(row) > 0 && row[0] == nodeDifference:
		d, err := decodeDifference(row)
		return d.steps, err
	}
	return maxSteps, nil // no branch to differ from: forces a whole row, which is always valid
}

func (s storedSteps) wrote([]byte, int) {}

// rememberedNodes is the number of nodes remembered per generation, about 100 bytes each.
const rememberedNodes = 200_000

// rememberedSteps caches the steps of recently written nodes for bulk appends: reading the
// row of every changed node would cost a tenth of an import. It has two generations. It is
// not safe for concurrent use.
type rememberedSteps struct {
	young, old map[string]uint8
	stored     storedSteps
}

// begin prepares for blocks that follow a state and are written together. Their steps are
// remembered at least until the next call.
func (r *rememberedSteps) begin(ctx context.Context, before State) {
	r.stored = storedSteps{ctx, before}
	if r.young == nil || len(r.young) > rememberedNodes {
		r.young, r.old = make(map[string]uint8), r.young
	}
}

// forget drops everything. It must be called if the store may not match what was recorded.
func (r *rememberedSteps) forget() { r.young, r.old = nil, nil }

func (r *rememberedSteps) steps(key []byte) (int, error) {
	if steps, ok := r.young[string(key)]; ok {
		return int(steps), nil
	}
	if steps, ok := r.old[string(key)]; ok {
		return int(steps), nil
	}
	return r.stored.steps(key)
}

func (r *rememberedSteps) wrote(key []byte, steps int) { r.young[string(key)] = uint8(steps) }
