package lightclient

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// places are the generalized indexes of the values that a beacon state proves.
type places struct{ finalized, current, next uint64 }

// placesAt returns where the state of a slot has its values. The numbers are in the
// specifications of Altair, Electra and Gloas.
func (c *Chain) placesAt(slot uint64) places {
	switch fork := rank[c.forkAt(slot).Name]; {
	case fork >= gloas:
		return places{735, 2945, 2946}
	case fork >= electra:
		return places{169, 86, 87}
	default:
		return places{105, 54, 55}
	}
}

// Generalized indexes in a beacon block's body.
const (
	placeExecution   = 25   // the execution block, until Gloas
	placeHashCapella = 412  // its hash, in the form of headers that Gloas introduced
	placeHashDeneb   = 812  // the same
	placeHashGloas   = 2856 // the hash of the execution block before
)

// unusedLeaves is the parent of two leaves without a value. From Deneb to Fulu every body has it at
// Capella's place of the hash, so a false schedule would prove it; no block has this hash.
var unusedLeaves = common.Hash(hashPair([32]byte{}, [32]byte{}))

// checkHeader checks that the execution block of a header is that of its beacon block. A header
// before Gloas may have either form: nodes give a finalized one in that of the attested header.
func (c *Chain) checkHeader(h *Header) error {
	slot := h.Beacon.Slot
	at := c.forkAt(slot)
	fork := rank[at.Name]
	if !KnowsFork(at.Name) {
		return fmt.Errorf("%w %q in slot %d: install a later version", ErrUnknownFork, at.Name, slot)
	}
	if fork < capella {
		return fmt.Errorf("%w: slot %d is before Capella, when headers did not prove their execution block (want a newer checkpoint)", ErrUnknownFork, slot)
	}
	if h.Execution != nil {
		if h.Execution.BaseFee == nil {
			return fmt.Errorf("%w: the execution header of slot %d has no base fee", ErrFalse, slot)
		}
		if fork >= gloas || !provesLeaf(h.Execution.root(fork), h.ExecutionBranch, placeExecution, h.Beacon.BodyRoot) {
			return fmt.Errorf("%w: execution block %#x of slot %d is not proven", ErrFalse, h.Execution.BlockHash, slot)
		}
		return nil
	}
	place := uint64(placeHashCapella)
	switch {
	case fork >= gloas:
		place = placeHashGloas
	case fork >= deneb:
		place = placeHashDeneb
	}
	if h.ExecutionBlockHash == (common.Hash{}) || h.ExecutionBlockHash == unusedLeaves || !provesLeaf(h.ExecutionBlockHash, h.ExecutionBranch, place, h.Beacon.BodyRoot) {
		return fmt.Errorf("%w: execution block %#x of slot %d is not proven", ErrFalse, h.ExecutionBlockHash, slot)
	}
	return nil
}
