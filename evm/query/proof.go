package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/merkle"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Proof is a Merkle proof of an account and some of its slots, or of their absence.
type Proof struct {
	Account *types.StateAccount // nil if absent
	Nodes   [][]byte            // of the account trie, from the root down
	Slots   []SlotProof         // in the order of the request
}

// SlotProof is a Merkle proof of a slot.
type SlotProof struct {
	Value common.Hash // zero if the slot is absent
	Nodes [][]byte    // of the account's storage trie, from the root down; none if it is empty
}

// Prove returns a proof of an account and some slots in the state after a block of the view.
func (v *View) Prove(ctx context.Context, number uint64, address common.Address, slots []common.Hash) (*Proof, error) {
	v.readProofAhead(ctx, number, evm.HashAddress(address), slots)
	header, err := v.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	state := v.stateWithTries(number)
	if deferred, ok := deferredChecks(state); ok {
		proof, err := v.prove(ctx, deferred, number, header.Root, address, slots)
		damaged := errors.Is(err, archive.ErrCorrupt) || errors.Is(err, evm.ErrMissing) || err == nil && !deferred.Right()
		if !damaged {
			return proof, err
		} // else each node is checked, to say which one is wrong
	}
	return v.prove(ctx, state, number, header.Root, address, slots)
}

// deferredChecks returns a state that leaves the check of its trie nodes until they all are read, if
// there is one.
func deferredChecks(state evm.State) (*archive.Deferred, bool) {
	stored, ok := state.(archive.State)
	if !ok {
		return nil, false
	}
	return stored.Deferred()
}

// prove is [View.Prove] in a state, which has a root.
func (v *View) prove(ctx context.Context, state evm.State, number uint64, root common.Hash, address common.Address, slots []common.Hash) (*Proof, error) {
	proof := &Proof{Slots: make([]SlotProof, len(slots))}
	if err := prefetchProof(ctx, state, address, slots); err != nil {
		return nil, err
	}
	key := evm.HashAddress(address)
	readBelow := func(ctx context.Context, owner, key common.Hash, depth int) {
		v.readLevelsAhead(ctx, number, owner, key, depth)
	}
	accounts := trieWalk{state: state, root: root, ahead: readBelow}
	value, err := accounts.to(ctx, key)
	if err != nil {
		return nil, err
	}
	proof.Nodes = accounts.proof()
	if value == nil {
		return proof, nil
	}
	proof.Account = new(types.StateAccount)
	if err := rlp.DecodeBytes(value, proof.Account); err != nil {
		return nil, fmt.Errorf("%w: account %x in the state trie of block %d: %v", archive.ErrCorrupt, key, number, err)
	}
	storage := trieWalk{state: state, owner: key, root: proof.Account.Root, ahead: readBelow}
	return proof, proveSlots(ctx, &storage, slots, proof.Slots)
}

// proveSlots sets proofs to the proofs of slots. It visits slots in trie order, to read
// nodes on shared paths once.
func proveSlots(ctx context.Context, storage *trieWalk, slots []common.Hash, proofs []SlotProof) error {
	type slotAt struct {
		key   common.Hash
		index int
	}
	order := make([]slotAt, len(slots))
	for i, slot := range slots {
		order[i] = slotAt{evm.HashSlot(slot), i}
	}
	slices.SortFunc(order, func(a, b slotAt) int { return a.key.Cmp(b.key) })
	for _, slot := range order {
		value, err := storage.to(ctx, slot.key)
		if err != nil {
			return err
		}
		proof := &proofs[slot.index]
		proof.Nodes = storage.proof()
		if value == nil {
			continue
		}
		word, rest, err := rlp.SplitString(value)
		if err != nil || len(rest) > 0 || len(word) > common.HashLength {
			return fmt.Errorf("%w: slot %x of %x is not a word: %x", archive.ErrCorrupt, slot.key, storage.owner, value)
		}
		proof.Value.SetBytes(word)
	}
	return nil
}

// trieWalk visits keys of a trie. It keeps the nodes on the path to the last key.
type trieWalk struct {
	state evm.State
	owner common.Hash // as in [evm.State]
	root  common.Hash
	// ahead reads the nodes on a path from a depth on; nil: they are read one by one.
	ahead func(ctx context.Context, owner, key common.Hash, depth int)
	below bool // ahead was called for the path

	path  [evm.KeyNibbles]byte // the last key, one nibble per byte
	nodes []walkedNode
}

// walkedNode is a node on the path to a key.
type walkedNode struct {
	depth int // nibbles of the key above it
	blob  []byte
}

// to moves to a key and returns its value, nil if the trie does not contain it.
func (w *trieWalk) to(ctx context.Context, key common.Hash) (value []byte, err error) {
	if w.root == types.EmptyRootHash {
		return nil, nil
	}
	w.turn(key)
	w.below = false
	if len(w.nodes) == 0 {
		if err := w.read(ctx, 0, w.root[:]); err != nil {
			return nil, err
		}
	}
	for {
		from := w.nodes[len(w.nodes)-1]
		found, err := merkle.Descend(from.blob, w.path[:], from.depth)
		if err != nil {
			return nil, fmt.Errorf("%w: trie node at path %x of %x: %v", archive.ErrCorrupt, w.path[:from.depth], w.owner, err)
		}
		if found.Hash == nil {
			return found.Value, nil
		}
		if found.Depth >= proofLevels && !w.below && w.ahead != nil {
			w.ahead(ctx, w.owner, key, found.Depth)
			w.below = true
		}
		if err := w.read(ctx, found.Depth, found.Hash); err != nil {
			return nil, err
		}
	}
}

// turn sets path to another key, and drops the nodes that are not on it.
func (w *trieWalk) turn(key common.Hash) {
	before := w.path
	evm.AppendNibbles(w.path[:0], key[:])
	shared := 0
	for shared < len(before) && w.path[shared] == before[shared] {
		shared++
	}
	for len(w.nodes) > 0 && w.nodes[len(w.nodes)-1].depth > shared {
		w.nodes = w.nodes[:len(w.nodes)-1]
	}
}

// read reads the node at a depth of the path and adds it to nodes.
func (w *trieWalk) read(ctx context.Context, depth int, hash []byte) error {
	blob, err := w.state.Node(ctx, w.owner, w.path[:depth], common.BytesToHash(hash))
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, walkedNode{depth, blob})
	return nil
}

// proof returns the nodes on the path to the last key.
func (w *trieWalk) proof() [][]byte {
	blobs := make([][]byte, len(w.nodes))
	for i, node := range w.nodes {
		blobs[i] = node.blob
	}
	return blobs
}
