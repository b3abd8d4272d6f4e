package paging

// AheadBlocks is how many blocks with candidates are read side by side at most.
const AheadBlocks = 64

// Found is a block with candidates, and their ascending positions in it.
type Found struct {
	Block     uint64
	Positions []uint32
}

// Ahead finds the blocks with the candidates of a page before they are asked for, so that
// what a page is made of can be read side by side where a read takes a round trip.
type Ahead struct {
	Candidates
	Most int // candidates that are found ahead, and those that follow in the same block
	// Read is called with the blocks that Next is about to return. It must not keep them.
	Read func([]Found)

	found     []Found // that Next has not returned
	positions []uint32
	end       bool
}

// Next implements [Candidates].
func (a *Ahead) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	for {
		for len(a.found) > 0 {
			next := a.found[0]
			a.found = a.found[1:]
			if next.Block >= block {
				return next.Block, append(dst, next.Positions...), true, nil
			}
		}
		if a.end {
			return 0, dst, false, nil
		}
		if err := a.fill(block); err != nil {
			return 0, dst, false, err
		}
	}
}

// fill finds the next blocks.
func (a *Ahead) fill(block uint64) error {
	a.found, a.positions = nil, a.positions[:0]
	var ends []int // of each block's positions
	for len(a.found) < AheadBlocks && len(a.positions) <= a.Most {
		at, positions, ok, err := a.Candidates.Next(block, a.positions)
		if err != nil {
			return err
		}
		if !ok {
			a.end = true
			break
		}
		a.positions = positions
		a.found, ends = append(a.found, Found{Block: at}), append(ends, len(positions))
		if block = at + 1; block == 0 {
			a.end = true
			break
		}
	}
	begin := 0
	for i, end := range ends { // not before: they may have moved
		a.found[i].Positions, begin = a.positions[begin:end:end], end
	}
	a.Read(a.found)
	return nil
}
