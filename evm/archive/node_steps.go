package archive

import "context"

// nodeSteps knows how the nodes that a block changes are stored before it.
type nodeSteps interface {
	// steps is how many rows lead from the newest row of a branch down to a whole one.
	steps(key []byte) (int, error)
	// wrote notes the same of the row that the block brings.
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
	return mostSteps, nil // there is no branch to differ from: a whole one is right whatever there is
}

func (s storedSteps) wrote([]byte, int) {}

// rememberedNodes is how many nodes of a generation are remembered, about 100 bytes each.
const rememberedNodes = 200_000

// rememberedSteps remembers what was written lately, for blocks that are appended
// in bulk: to read the row of every node that a block changes would cost a tenth of
// an import. It keeps two generations. It is not for concurrent use.
type rememberedSteps struct {
	young, old map[string]uint8
	stored     storedSteps
}

// begin prepares for blocks that follow a state and are written together: what is
// noted of them is remembered at least until the next call.
func (r *rememberedSteps) begin(ctx context.Context, before State) {
	r.stored = storedSteps{ctx, before}
	if r.young == nil || len(r.young) > rememberedNodes {
		r.young, r.old = make(map[string]uint8), r.young
	}
}

// forget is for when rows were written, or were not, that it does not know of.
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
