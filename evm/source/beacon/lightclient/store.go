// Package lightclient verifies which block is the head of a beacon chain, as a light client:
// from a trusted block and the signatures of sync committees. It implements the sync protocol of
// ethereum/consensus-specs, specs/altair/light-client/sync-protocol.md, with the changes of
// Capella, Deneb, Electra and Gloas.
//
//	trusted block -> its state -> committee of its period -> signs a later block
//	                                                         -> its state -> next committee
//	                                                                      -> finalized block
//
// It differs from the specification in two points, both stricter. A header counts only if two
// thirds of a committee have signed it, also as the head, for which the specification is content
// with half of the most signers that were seen lately. And an update is never forced: while
// nothing becomes final for so long that a committee's period ends, the head stays.
//
// The package makes no requests and keeps no time. Everything that it is given may be false.
package lightclient

import (
	"errors"
	"fmt"
	"math/bits"

	"ashlar/evm/source/beacon/bls"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrFalse means that no honest node sends such data.
	ErrFalse = errors.New("false light client data")
	// ErrNothingNew means that an update is no newer than what is known.
	ErrNothingNew = errors.New("nothing new")
	// ErrFuture means that an update was signed in a slot that has not begun by this clock.
	ErrFuture = errors.New("the signature is from the future")
	// ErrGap means that the committees between the known one and an update's are missing.
	ErrGap = errors.New("sync committees are missing")
	// ErrFewSigners means that less than two thirds of a committee have signed.
	ErrFewSigners = errors.New("too few signers")
	// ErrUnknownFork means that a header is of a fork that this version does not know, or too old.
	ErrUnknownFork = errors.New("unknown fork")
)

// Store is what a light client has verified. It belongs to one goroutine.
type Store struct {
	slots     uint64 // of a period
	finalized Header
	head      Header
	current   *committee // of the finalized header's period
	next      *committee // nil while it is not known
}

// committee is a verified sync committee.
type committee struct {
	root common.Hash
	keys []bls.PublicKey
}

// Begin returns a store that begins with a trusted block.
func Begin(chain *Chain, trusted common.Hash, b *Bootstrap) (*Store, error) {
	header := &b.Header
	if got := header.Beacon.Root(); got != trusted {
		return nil, fmt.Errorf("%w: the bootstrap is of block %#x, expected %#x", ErrFalse, got, trusted)
	}
	if err := chain.checkHeader(header); err != nil {
		return nil, err
	}
	s := &Store{finalized: *header, head: *header}
	for _, p := range periods() {
		if p.size == len(b.Committee.PublicKeys) {
			s.slots = p.slots
		}
	}
	if s.slots == 0 {
		return nil, fmt.Errorf("%w: a sync committee of %d members (want 512 or 32)", ErrFalse, len(b.Committee.PublicKeys))
	}
	root := b.Committee.root()
	if !provesLeaf(root, b.Branch, chain.placesAt(header.Beacon.Slot).current, header.Beacon.StateRoot) {
		return nil, fmt.Errorf("%w: the sync committee of block %#x is not proven", ErrFalse, trusted)
	}
	var err error
	s.current, err = newCommittee(root, &b.Committee)
	return s, err
}

// newCommittee decodes the keys of a committee whose root is proven.
func newCommittee(root common.Hash, c *SyncCommittee) (*committee, error) {
	verified := &committee{root: root, keys: make([]bls.PublicKey, len(c.PublicKeys))}
	for i, key := range c.PublicKeys {
		var err error
		if verified.keys[i], err = bls.ParsePublicKey(key); err != nil {
			return nil, fmt.Errorf("%w: member %d of the sync committee: %w", ErrFalse, i, err)
		}
	}
	return verified, nil
}

// Finalized returns the last finalized header.
func (s *Store) Finalized() *Header { return &s.finalized }

// Head returns the newest header that two thirds of a committee have signed.
func (s *Store) Head() *Header { return &s.head }

// Period returns the number of the committee's period that a slot is in.
func (s *Store) Period(slot uint64) uint64 { return slot / s.slots }

// FinalizedPeriod returns the period of the finalized header.
func (s *Store) FinalizedPeriod() uint64 { return s.Period(s.finalized.Beacon.Slot) }

// KnowsNext reports whether the committee of the next period is known.
func (s *Store) KnowsNext() bool { return s.next != nil }

// LastCommittee returns the last period whose committee is known. The update of that period has
// the next one.
func (s *Store) LastCommittee() uint64 {
	if s.next != nil {
		return s.FinalizedPeriod() + 1
	}
	return s.FinalizedPeriod()
}

// Update verifies an update, by a clock that shows a slot, and takes over what is new. It
// changes nothing if it returns an error.
func (s *Store) Update(chain *Chain, u *Update, now uint64) error {
	if err := s.checkOrder(u, now); err != nil {
		return err
	}
	if err := chain.checkHeader(&u.Attested); err != nil {
		return err
	}
	if err := checkFinalized(chain, u); err != nil {
		return err
	}
	if err := s.checkNext(chain, u); err != nil {
		return err
	}
	if err := s.checkSignature(chain, u); err != nil {
		return err
	}
	return s.apply(u)
}

// checkOrder checks the slots of an update, and that it is of use.
func (s *Store) checkOrder(u *Update, now uint64) error {
	attested, finalized := u.Attested.Beacon.Slot, u.Finalized.Beacon.Slot
	if u.SignatureSlot <= attested || attested < finalized {
		return fmt.Errorf("%w: signed in slot %d, attested slot %d, finalized slot %d (want them to descend)", ErrFalse, u.SignatureSlot, attested, finalized)
	}
	if u.SignatureSlot > now {
		return fmt.Errorf("%w: slot %d, the clock shows slot %d", ErrFuture, u.SignatureSlot, now)
	}
	ours, signed := s.FinalizedPeriod(), s.Period(u.SignatureSlot)
	named := s.next == nil && u.namesNext() && s.Period(attested) == ours
	switch {
	case signed < ours:
		return fmt.Errorf("%w: signed in period %d, known is %d", ErrNothingNew, signed, ours)
	case signed > ours+1 || signed == ours+1 && s.next == nil:
		return fmt.Errorf("%w: signed in period %d, known is that of period %d", ErrGap, signed, ours)
	case attested <= s.head.Beacon.Slot && finalized <= s.finalized.Beacon.Slot && !named:
		return fmt.Errorf("%w: attested slot %d, known is %d", ErrNothingNew, attested, s.head.Beacon.Slot)
	case attested <= s.finalized.Beacon.Slot && !named:
		return fmt.Errorf("%w: attested slot %d, finalized is %d", ErrNothingNew, attested, s.finalized.Beacon.Slot)
	}
	return nil
}

// checkFinalized checks that the finalized header of an update, if it has one, is that of the
// attested state.
func checkFinalized(chain *Chain, u *Update) error {
	var root common.Hash // zero before the first block is final
	switch {
	case !u.namesFinalized():
		if !u.Finalized.isEmpty() {
			return fmt.Errorf("%w: a finalized header in slot %d without a proof", ErrFalse, u.Finalized.Beacon.Slot)
		}
		return nil
	case u.Finalized.Beacon.Slot == 0:
		if !u.Finalized.isEmpty() {
			return fmt.Errorf("%w: a finalized header in slot 0 (want none)", ErrFalse)
		}
	default:
		if err := chain.checkHeader(&u.Finalized); err != nil {
			return fmt.Errorf("finalized: %w", err)
		}
		root = u.Finalized.Beacon.Root()
	}
	if !provesLeaf(root, u.FinalizedBranch, chain.placesAt(u.Attested.Beacon.Slot).finalized, u.Attested.Beacon.StateRoot) {
		return fmt.Errorf("%w: that block %#x is final is not proven", ErrFalse, root)
	}
	return nil
}

// checkNext checks that the next committee of an update, if it has one, is that of the attested
// state.
func (s *Store) checkNext(chain *Chain, u *Update) error {
	if !u.namesNext() {
		if !u.Next.isEmpty() {
			return fmt.Errorf("%w: a next sync committee without a proof", ErrFalse)
		}
		return nil
	}
	if len(u.Next.PublicKeys) != len(s.current.keys) {
		return fmt.Errorf("%w: the next sync committee has %d members (want %d)", ErrFalse, len(u.Next.PublicKeys), len(s.current.keys))
	}
	root := u.Next.root()
	if s.next != nil && s.Period(u.Attested.Beacon.Slot) == s.FinalizedPeriod() && root != s.next.root {
		return fmt.Errorf("%w: the next sync committee is %#x, known is %#x", ErrFalse, root, s.next.root)
	}
	if !provesLeaf(root, u.NextBranch, chain.placesAt(u.Attested.Beacon.Slot).next, u.Attested.Beacon.StateRoot) {
		return fmt.Errorf("%w: the next sync committee %#x is not proven", ErrFalse, root)
	}
	return nil
}

// checkSignature checks who has signed an update.
func (s *Store) checkSignature(chain *Chain, u *Update) error {
	signing := s.current
	if s.Period(u.SignatureSlot) > s.FinalizedPeriod() {
		signing = s.next
	}
	if len(u.Aggregate.Bits)*8 != len(signing.keys) {
		return fmt.Errorf("%w: %d bytes for the members that have signed (want %d)", ErrFalse, len(u.Aggregate.Bits), len(signing.keys)/8)
	}
	var signers []bls.PublicKey
	for i, eight := range u.Aggregate.Bits {
		for ; eight != 0; eight &= eight - 1 {
			signers = append(signers, signing.keys[8*i+bits.TrailingZeros8(eight)])
		}
	}
	if 3*len(signers) < 2*len(signing.keys) {
		return fmt.Errorf("%w: %d of %d members of the sync committee have signed slot %d", ErrFewSigners, len(signers), len(signing.keys), u.Attested.Beacon.Slot)
	}
	message := chain.signingRoot(u.Attested.Beacon.Root(), u.SignatureSlot)
	if err := bls.Verify(signers, message, u.Aggregate.Signature); err != nil {
		return fmt.Errorf("%w: slot %d, signed by %d members of the sync committee: %w", ErrFalse, u.Attested.Beacon.Slot, len(signers), err)
	}
	return nil
}

// apply takes over what is new in a verified update.
func (s *Store) apply(u *Update) error {
	ours, finalized := s.FinalizedPeriod(), s.Period(u.Finalized.Beacon.Slot)
	// The next committee counts once a block of its state's period is final.
	var next *committee
	newer := u.namesFinalized() && u.Finalized.Beacon.Slot > s.finalized.Beacon.Slot
	named := u.namesNext() && u.namesFinalized() && finalized == s.Period(u.Attested.Beacon.Slot)
	if named && (s.next == nil && finalized == ours || newer && finalized == ours+1) {
		var err error
		if next, err = newCommittee(u.Next.root(), &u.Next); err != nil {
			return err
		}
	}
	if newer && finalized == ours+1 {
		s.current, s.next = s.next, next
	} else if next != nil {
		s.next = next
	}
	if newer {
		s.finalized = u.Finalized
	}
	if u.Attested.Beacon.Slot > s.head.Beacon.Slot {
		s.head = u.Attested
	}
	return nil
}
