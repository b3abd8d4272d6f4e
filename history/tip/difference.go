package tip

import (
	"fmt"

	"ashlar/chain"
)

// Difference returns the blocks that are dropped, newest first, and added, oldest first,
// when the head moves from the end of one branch to the end of another.
//
// settled returns the settled block with a number. Difference calls it for blocks below the
// branches, as some may have been settled since the older branch was created.
func Difference(from, to *Branch, settled func(number uint64) (chain.Ref, error)) (dropped, added []chain.Ref, err error) {
	common, err := fork(from, to, settled)
	if err != nil {
		return nil, nil, err
	}
	for number := from.Ref().Number; number > common; number-- {
		ref, err := from.find(number, settled)
		if err != nil {
			return nil, nil, err
		}
		dropped = append(dropped, ref)
	}
	for number := common + 1; number <= to.Ref().Number; number++ {
		ref, err := to.find(number, settled)
		if err != nil {
			return nil, nil, err
		}
		added = append(added, ref)
	}
	return dropped, added, nil
}

// fork returns the number of the last block that two branches share.
func fork(a, b *Branch, settled func(number uint64) (chain.Ref, error)) (uint64, error) {
	for number := min(a.Ref().Number, b.Ref().Number); ; number-- {
		inA, err := a.find(number, settled)
		if err != nil {
			return 0, err
		}
		inB, err := b.find(number, settled)
		if err != nil {
			return 0, err
		}
		if inA == inB {
			return number, nil
		}
		if number == 0 {
			return 0, fmt.Errorf("tip: the branches of blocks %s and %s begin with different blocks: %s and %s", a.Ref(), b.Ref(), inA, inB)
		}
	}
}

// find returns the block with a number on the branch, or the settled block below it.
func (b *Branch) find(number uint64, settled func(number uint64) (chain.Ref, error)) (chain.Ref, error) {
	if ref, ok := b.At(number); ok {
		return ref, nil
	}
	return settled(number)
}
