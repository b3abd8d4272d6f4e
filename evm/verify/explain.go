package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// place is a place in the state at which two sides differ: a node, or a key.
type place struct {
	owner common.Hash
	path  []byte // of the node, or the whole key, one nibble per byte
	isKey bool
}

func placeOf(subject string) place {
	p := place{owner: common.Hash([]byte(subject[1 : 1+common.HashLength])), isKey: subject[0] == subjectKey}
	rest := []byte(subject[1+common.HashLength:])
	if p.isKey {
		rest = evm.AppendNibbles(nil, rest)
	}
	p.path = rest
	return p
}

// explainer finds the wrong row, given the places at which the sides differ as of a block. It
// descends from the state root and trusts a node if its hash is the one in its parent.
type explainer struct {
	*checker
	block  uint64
	first  bool    // block is the first one checked, so the wrong row may be of an earlier block
	places []place // that differ as of this block
}

// explainState returns the finding for the row that causes the first of the differences.
func (c *checker) explainState(ctx context.Context, differences []audit.Difference) error {
	e := &explainer{checker: c, block: c.moments.block(differences[0].Moment), first: differences[0].Moment == 0}
	for _, d := range differences {
		if d.Moment == differences[0].Moment {
			e.places = append(e.places, placeOf(d.Subject))
		}
	}
	for _, p := range e.places {
		if err := e.descend(ctx, p); err != nil {
			return err
		}
	}
	p := e.places[0] // unreachable: every row has the expected hash
	return e.of(c.tables.TrieNodes, archive.AppendNodeKey(nil, p.owner, p.path), "rows that agree", "rows that do not")
}

// of returns a finding about a row as of the explainer's block.
func (e *explainer) of(t *kv.Table, partition []byte, wanted, got string) *audit.Finding {
	return e.Finding(t, partition, e.block, wanted, got)
}

// newest returns the newest value in a table of versions as of the block, with differences
// applied. whence describes the row that it comes from, for messages; it is "none" if there
// is no row.
func (e *explainer) newest(ctx context.Context, t *kv.Table, partition []byte) (value []byte, whence string, err error) {
	var since uint64
	if t == e.tables.TrieNodes {
		value, since, err = archive.NewestNode(ctx, e.Store, partition, e.block, nil)
	} else {
		value, since, err = e.Store.Newest(ctx, t, partition, e.block, nil)
	}
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, "none", nil
	case err != nil:
		return nil, "", e.Unreadable(ctx, t, partition, e.block, err)
	case since == e.block:
		return value, "in the row of this block", nil
	case e.first || e.moments.sample != nil:
		return value, fmt.Sprintf("in the row of block %d", since), nil
	}
	// The value was right until the previous block.
	return value, fmt.Sprintf("in the row of block %d: this block has none", since), nil
}

// descend descends to a place and returns the finding about a wrong row on the path or at
// the place, nil if there is none.
func (e *explainer) descend(ctx context.Context, p place) error {
	root, err := e.root(ctx, p.owner)
	if err != nil {
		return err
	}
	at := below{hash: root[:]}
	if root == types.EmptyRootHash {
		at.hash = nil
	}
	for at.hash != nil {
		next, err := e.step(ctx, p, at)
		if err != nil {
			return err
		}
		if next == nil { // p was reached, and is right
			return nil
		}
		at = *next
	}
	if !p.isKey {
		return e.noNode(ctx, p)
	}
	return e.value(ctx, p, at.value)
}

// root returns the root of an owner's trie.
func (e *explainer) root(ctx context.Context, owner common.Hash) (common.Hash, error) {
	if owner == (common.Hash{}) {
		header, err := e.header(ctx, e.block)
		if err != nil {
			return common.Hash{}, err
		}
		return header.Root, nil
	}
	if err := e.descend(ctx, place{path: evm.AppendNibbles(nil, owner[:]), isKey: true}); err != nil {
		return common.Hash{}, err
	}
	row, _, err := e.newest(ctx, e.tables.Accounts, owner[:])
	if err != nil {
		return common.Hash{}, err
	}
	account, err := archive.ParseAccount(row)
	if err != nil {
		return common.Hash{}, e.Unreadable(ctx, e.tables.Accounts, owner[:], e.block, err)
	}
	if account == nil {
		return types.EmptyRootHash, nil
	}
	return account.Root, nil
}

// step checks the node at a path against the hash in its parent. It returns what the node
// says about the next place on the path to p: nil if the node is p itself, neither a hash
// nor a value if there is nothing.
func (e *explainer) step(ctx context.Context, p place, at below) (*below, error) {
	t := e.tables.TrieNodes
	partition := archive.AppendNodeKey(nil, p.owner, at.path)
	row, whence, err := e.newest(ctx, t, partition)
	if err != nil {
		return nil, err
	}
	wanted := fmt.Sprintf("a node with the hash %#x", at.hash)
	if len(row) == 0 {
		if whence != "none" {
			whence = "a deleted node, " + whence
		}
		return nil, e.of(t, partition, wanted, whence)
	}
	node, err := archive.ParseNode(at.path, row)
	if err != nil {
		return nil, e.Unreadable(ctx, t, partition, e.block, err)
	}
	if node.Rest != nil {
		return e.leaf(ctx, p, at, node, wanted)
	}
	if hash := crypto.Keccak256(node.Blob); !bytes.Equal(hash, at.hash) {
		return nil, e.of(t, partition, wanted, fmt.Sprintf("one with %#x, %s", hash, whence))
	}
	if !p.isKey && len(at.path) == len(p.path) {
		return nil, nil
	}
	next := new(below)
	err = children(at.path, node.Blob, func(b below) {
		onTheWay := b.hash != nil && bytes.HasPrefix(p.path, b.path)
		if onTheWay || b.hash == nil && p.isKey && b.key == evm.NibblesKey(p.path) {
			*next = below{path: bytes.Clone(b.path), hash: b.hash, value: b.value}
		}
	})
	if err != nil {
		return nil, e.of(t, partition, "a branch or an extension", err.Error())
	}
	return next, nil
}

// leaf checks a leaf together with the value of its key.
func (e *explainer) leaf(ctx context.Context, p place, at below, node archive.TrieNode, wanted string) (*below, error) {
	t, partition := e.flat(p.owner, node.Key)
	value, whence, err := e.newest(ctx, t, partition)
	if err != nil {
		return nil, err
	}
	if len(value) == 0 {
		return nil, e.noValue(ctx, p, at, node, wanted, whence)
	}
	blob, err := archive.EncodeLeaf(p.owner, node.Rest, value)
	if err != nil {
		return nil, e.Unreadable(ctx, t, partition, e.block, err)
	}
	if hash := crypto.Keccak256(blob); !bytes.Equal(hash, at.hash) {
		got := fmt.Sprintf("%s, whose leaf has %#x, %s", audit.DescribeValue(value, 0), hash, whence)
		if e.othersBelow(p.owner, at.path) {
			return nil, e.of(e.tables.TrieNodes, archive.AppendNodeKey(nil, p.owner, at.path), wanted, "a leaf with "+got)
		}
		return nil, e.of(t, partition, fmt.Sprintf("a value whose leaf has the hash %#x", at.hash), got)
	}
	switch {
	case p.isKey && evm.NibblesKey(p.path) == node.Key:
		return &below{value: value}, nil
	case !p.isKey && len(at.path) == len(p.path):
		return nil, nil
	}
	return new(below), nil
}

// othersBelow reports whether the sides also differ about nodes below a path. If so, the
// path should not have a leaf.
func (e *explainer) othersBelow(owner common.Hash, path []byte) bool {
	return slices.ContainsFunc(e.places, func(p place) bool {
		return !p.isKey && p.owner == owner && len(p.path) > len(path) && bytes.HasPrefix(p.path, path)
	})
}

// noValue returns the finding for a leaf whose key has no value. Either the value is
// missing, or the row of trie_nodes is wrong: another node belongs there, or the leaf of
// another key, whose value has the expected hash.
func (e *explainer) noValue(ctx context.Context, p place, at below, node archive.TrieNode, wanted, whence string) error {
	if whence != "none" {
		whence = "deleted, " + whence
	}
	nodePartition := archive.AppendNodeKey(nil, p.owner, at.path)
	if e.othersBelow(p.owner, at.path) {
		return e.of(e.tables.TrieNodes, nodePartition, wanted, fmt.Sprintf("the leaf of the key %s, which has no value", node.Key))
	}
	for _, other := range e.places {
		if !other.isKey || other.owner != p.owner || !bytes.HasPrefix(other.path, at.path) {
			continue
		}
		t, partition := e.flat(p.owner, evm.NibblesKey(other.path))
		value, _, err := e.newest(ctx, t, partition)
		if err != nil {
			return err
		}
		if len(value) == 0 {
			continue
		}
		blob, err := archive.EncodeLeaf(p.owner, leafRest(other.path[len(at.path):]), value)
		if err == nil && bytes.Equal(crypto.Keccak256(blob), at.hash) {
			return e.of(e.tables.TrieNodes, nodePartition, fmt.Sprintf("the leaf of the key %s", evm.NibblesKey(other.path)), fmt.Sprintf("that of %s", node.Key))
		}
	}
	t, partition := e.flat(p.owner, node.Key)
	return e.of(t, partition, fmt.Sprintf("a value whose leaf has the hash %#x", at.hash), whence)
}

// leafRest returns the hex-prefix encoding of the rest of a leaf's key.
func leafRest(nibbles []byte) []byte {
	rest := []byte{0x20}
	if len(nibbles)%2 == 1 {
		rest[0], nibbles = 0x30|nibbles[0], nibbles[1:]
	}
	for i := 0; i < len(nibbles); i += 2 {
		rest = append(rest, nibbles[i]<<4|nibbles[i+1])
	}
	return rest
}

// noNode checks a place where the trie has no node.
func (e *explainer) noNode(ctx context.Context, p place) error {
	t := e.tables.TrieNodes
	partition := archive.AppendNodeKey(nil, p.owner, p.path)
	row, whence, err := e.newest(ctx, t, partition)
	if err != nil || len(row) == 0 {
		return err
	}
	return e.of(t, partition, "no node, as no node above refers to it", fmt.Sprintf("%s, %s", audit.DescribeValue(row, 0), whence))
}

// value compares a key's value with the value in the trie.
func (e *explainer) value(ctx context.Context, p place, wanted []byte) error {
	t, partition := e.flat(p.owner, evm.NibblesKey(p.path))
	got, whence, err := e.newest(ctx, t, partition)
	if err != nil || bytes.Equal(got, wanted) {
		return err
	}
	said := "no value, as in the trie"
	if len(wanted) > 0 {
		said = "the value " + fmt.Sprintf("%#x", wanted) + ", as in the trie"
	}
	if len(got) > 0 {
		whence = audit.DescribeValue(got, 0) + ", " + whence
	}
	return e.of(t, partition, said, whence)
}
