package query

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"ashlar/evm"
	"ashlar/evm/archive"

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
	key := evm.HashAddress(address)
	v.readProofAhead(ctx, number, key, slots)
	header, err := v.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	proof := &Proof{Slots: make([]SlotProof, len(slots))}
	state := v.State(number)
	readBelow := func(ctx context.Context, owner, key common.Hash, depth int) {
		v.readLevelsAhead(ctx, number, owner, key, depth)
	}
	accounts := trieWalk{state: state, root: header.Root, ahead: readBelow}
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
		found, err := descend(from.blob, w.path[:], from.depth)
		if err != nil {
			return nil, fmt.Errorf("%w: trie node at path %x of %x: %v", archive.ErrCorrupt, w.path[:from.depth], w.owner, err)
		}
		if found.hash == nil {
			return found.value, nil
		}
		if found.depth >= proofLevels && !w.below && w.ahead != nil {
			w.ahead(ctx, w.owner, key, found.depth)
			w.below = true
		}
		if err := w.read(ctx, found.depth, found.hash); err != nil {
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

// descent is where the path to a key leaves a node: at the hash of a child, at the key's
// value, or, if neither is set, at nothing.
type descent struct {
	depth int // of the child
	hash  []byte
	value []byte
}

// descend follows path from a depth through an encoded node and the nodes embedded in it.
func descend(node, path []byte, depth int) (descent, error) {
	for {
		items, rest, err := rlp.SplitList(node)
		if err != nil {
			return descent{}, err
		}
		if len(rest) > 0 {
			return descent{}, fmt.Errorf("%d extra bytes", len(rest))
		}
		count, err := rlp.CountValues(items)
		if err != nil {
			return descent{}, err
		}
		var child []byte // its encoding
		leaf := false
		switch count {
		case 17:
			if depth == len(path) {
				return descent{}, fmt.Errorf("a branch below a whole key")
			}
			child = item(items, int(path[depth]))
			depth++
		case 2:
			encoded, _, err := rlp.SplitString(items)
			if err != nil {
				return descent{}, err
			}
			var n int
			var follows bool
			if n, leaf, follows = matchKey(encoded, path[depth:]); !follows {
				return descent{}, nil
			}
			depth += n
			child = item(items, 1)
		default:
			return descent{}, fmt.Errorf("it has %d items, expected 17 or 2", count)
		}
		kind, content, _, err := rlp.Split(child)
		switch {
		case err != nil:
			return descent{}, err
		case leaf:
			return valueAt(path, depth, content)
		case kind == rlp.List: // a node of less than 32 bytes is embedded in its parent
			node = child
		case len(content) == 0:
			return descent{}, nil
		case len(content) == common.HashLength:
			return descent{depth: depth, hash: content}, nil
		default:
			return descent{}, fmt.Errorf("a child's hash has %d bytes", len(content))
		}
	}
}

func valueAt(path []byte, depth int, value []byte) (descent, error) {
	if depth != len(path) || len(value) == 0 {
		return descent{}, fmt.Errorf("a leaf of %d nibbles with %d bytes", depth, len(value))
	}
	return descent{depth: depth, value: value}, nil
}

// item returns the encoding of item i of a list's content, which must have more than i items.
func item(items []byte, i int) []byte {
	for {
		_, _, rest, err := rlp.Split(items)
		if err != nil {
			return nil // cannot happen: the items have been counted
		}
		if i == 0 {
			return items[:len(items)-len(rest)]
		}
		items, i = rest, i-1
	}
}

// matchKey reports whether path begins with a hex-prefix encoded part of a key, the number of
// nibbles in that part, and whether the node is a leaf.
func matchKey(encoded, path []byte) (n int, leaf, follows bool) {
	var buffer [evm.KeyNibbles]byte
	nibbles, leaf, ok := evm.AppendHexPrefix(buffer[:0], encoded)
	return len(nibbles), leaf, ok && bytes.HasPrefix(path, nibbles)
}
