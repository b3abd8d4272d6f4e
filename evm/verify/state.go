package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Subjects in a ledger of the state.
//
// A node's place, by owner and path. The fact is the hash of the node there. It is stated by
// the parent node, the header, or the account of a storage trie; and by the node's own row.
//
// A key, by owner (zero for an account) and hash. The fact is its value. It is stated by the
// leaf and by the flat row. A leaf's row does not store the value: it is taken from the flat
// row, and the leaf's hash shows whether it is right.
const (
	subjectNode = 'n'
	subjectKey  = 'k'
)

func nodeSubject(dst []byte, owner common.Hash, path []byte) []byte {
	return append(append(append(dst, subjectNode), owner[:]...), path...)
}

func keySubject(dst []byte, owner, key common.Hash) []byte {
	return append(append(append(dst, subjectKey), owner[:]...), key[:]...)
}

// checkState checks the tables of the state against each other and against the state roots in
// the headers. If no block of the range has trie nodes, there are no moments, and the form of the rows is all
// that is checked.
func (c *checker) checkState(ctx context.Context) error {
	if c.To < c.archive.Extent().State { // no block of the range has a state
		return nil
	}
	if err := c.checkCodes(ctx); err != nil {
		return err
	}
	differences, err := audit.Compare(audit.NewLedger(c.moments.len()), func(l *audit.Ledger) error {
		if err := c.enterRoots(ctx, l); err != nil {
			return err
		}
		if err := c.eachVersion(ctx, c.tables.Accounts, l, c.enterAccount); err != nil {
			return err
		}
		if err := c.eachVersion(ctx, c.tables.Slots, l, c.enterSlot); err != nil {
			return err
		}
		return c.eachVersion(ctx, c.tables.TrieNodes, l, c.enterNode)
	})
	if err != nil {
		return err
	}
	if len(differences) > 0 {
		return c.explainState(ctx, differences)
	}
	if err := c.late.Err(); err != nil {
		return err
	}
	return c.checkCodesUsed(ctx)
}

// enterRoots enters the state roots of the headers.
func (c *checker) enterRoots(ctx context.Context, l *audit.Ledger) error {
	subject := nodeSubject(nil, common.Hash{}, nil)
	from, to := l.Span()
	for m := max(0, from-1); m < to; m++ { // including the span that ends at from
		header, err := c.header(ctx, c.moments.block(m))
		if err != nil {
			return err
		}
		if header.Root != types.EmptyRootHash {
			l.Hold(audit.Expected, subject, header.Root[:], m, m+1)
		}
	}
	return nil
}

// enterAccount enters a row of accounts: its value, and the root of the storage trie.
func (c *checker) enterAccount(ctx context.Context, l *audit.Ledger, v version) error {
	if err := c.checkVersion(c.tables.Accounts, v, common.HashLength); err != nil {
		return err
	}
	account, err := archive.ParseAccount(v.value)
	if err != nil {
		return c.Unreadable(ctx, c.tables.Accounts, v.partition, v.from, err)
	}
	if account == nil {
		return nil
	}
	key := common.Hash(v.partition)
	from, to := c.moments.from(v.from), c.moments.from(v.until)
	l.Hold(audit.Found, keySubject(nil, common.Hash{}, key), v.value, from, to)
	if account.Root != types.EmptyRootHash {
		l.Hold(audit.Expected, nodeSubject(nil, key, nil), account.Root[:], from, to)
	}
	if !bytes.Equal(account.CodeHash, types.EmptyCodeHash[:]) {
		c.useCode(common.Hash(account.CodeHash), v)
	}
	return nil
}

// enterSlot enters a row of slots.
func (c *checker) enterSlot(ctx context.Context, l *audit.Ledger, v version) error {
	if err := c.checkVersion(c.tables.Slots, v, 2*common.HashLength); err != nil {
		return err
	}
	if err := archive.CheckSlot(v.value); err != nil {
		return c.Unreadable(ctx, c.tables.Slots, v.partition, v.from, err)
	}
	if len(v.value) > 0 {
		owner, key := common.Hash(v.partition[:common.HashLength]), common.Hash(v.partition[common.HashLength:])
		l.Hold(audit.Found, keySubject(nil, owner, key), v.value, c.moments.from(v.from), c.moments.from(v.until))
	}
	return nil
}

// nothingNew is the expectation in a finding about a row that repeats the previous one.
const nothingNew = "no row, as nothing changed"

// checkVersion makes the checks that apply to rows of all tables of versions. The finding
// about a row that repeats the previous one is held back until both have been found to be
// right.
func (c *checker) checkVersion(t *kv.Table, v version, partitionBytes int) error {
	wrong := ""
	switch {
	case partitionBytes > 0 && len(v.partition) != partitionBytes:
		wrong = fmt.Sprintf("keys of %d bytes", partitionBytes)
	case v.from > c.Settled.Number:
		wrong = fmt.Sprintf("no row above block %d, the last settled block", c.Settled.Number)
	case v.repeats && c.mustBeNew(t, v.from):
		wrong = nothingNew
	default:
		return nil
	}
	f := c.Finding(t, v.partition, v.from, wrong, "a row with "+audit.DescribeValue(v.value, 0))
	if v.repeats && v.from <= c.Settled.Number {
		c.late.Keep(f)
		return nil
	}
	return f
}

// mustBeNew reports whether a row of a block must differ from the one before. Of those up to the
// first block with state, or with trie nodes, the ones before may be removed.
func (c *checker) mustBeNew(t *kv.Table, block uint64) bool {
	first := c.archive.Extent().State
	if t == c.tables.TrieNodes {
		first = c.archive.Extent().Tries
	}
	return first == 0 || block > first
}

// enterNode enters a row of trie_nodes: the hash of the node, and the hashes and values that
// it refers to.
func (c *checker) enterNode(ctx context.Context, l *audit.Ledger, v version) error {
	t := c.tables.TrieNodes
	owner, path, err := archive.ParseNodeKey(v.partition)
	if err != nil {
		return c.Unreadable(ctx, t, v.partition, v.from, err)
	}
	if err := c.checkVersion(t, v, 0); err != nil {
		return err
	}
	node, err := archive.ParseNode(path, v.value)
	if err != nil {
		return c.Unreadable(ctx, t, v.partition, v.from, err)
	}
	from, to := c.moments.from(v.from), c.moments.from(v.until)
	if node.Gone || from == to {
		return nil
	}
	if node.IsDifference {
		if node.Blob, err = c.wholeNode(ctx, v); node.Blob == nil || err != nil {
			return err
		}
	}
	subject := nodeSubject(nil, owner, path)
	if node.Rest != nil {
		return c.enterLeaf(ctx, l, subject, owner, node, from, to)
	}
	hash := crypto.Keccak256(node.Blob)
	l.Hold(audit.Found, subject, hash, from, to)
	err = children(path, node.Blob, func(b below) {
		if b.hash != nil {
			l.Hold(audit.Expected, nodeSubject(subject[:0], owner, b.path), b.hash, from, to)
		} else {
			l.Hold(audit.Expected, keySubject(subject[:0], owner, b.key), b.value, from, to)
		}
	})
	if err != nil {
		return c.Finding(t, v.partition, v.from, "a branch or an extension", err.Error())
	}
	return nil
}

// wholeNode reconstructs the node for a row that stores a difference; nil if that fails. Then
// an earlier row is wrong or missing, and a finding about that row takes precedence. If
// there is none, the difference itself should not exist, and the finding kept here is used.
func (c *checker) wholeNode(ctx context.Context, v version) ([]byte, error) {
	t := c.tables.TrieNodes
	value, _, err := archive.NewestNode(ctx, c.Store, v.partition, v.from, nil)
	switch {
	case errors.Is(err, archive.ErrCorrupt):
		c.late.Keep(c.Finding(t, v.partition, v.from, "a difference from the row before", err.Error()))
		return nil, nil
	case err != nil:
		return nil, c.Unreadable(ctx, t, v.partition, v.from, err)
	}
	before, _, err := archive.NewestNode(ctx, c.Store, v.partition, v.from-1, nil)
	if err != nil {
		return nil, c.Unreadable(ctx, t, v.partition, v.from-1, err)
	}
	if bytes.Equal(before, value) {
		c.late.Keep(c.Finding(t, v.partition, v.from, nothingNew, "a row with "+audit.DescribeValue(v.value, 0)))
	}
	return value[1:], nil
}

// enterLeaf enters a leaf that exists over the moments from <= m < to: each value of its key
// in that time, and the resulting hash of the leaf.
func (c *checker) enterLeaf(ctx context.Context, l *audit.Ledger, subject []byte, owner common.Hash, node archive.TrieNode, from, to int) error {
	t, partition := c.flat(owner, node.Key)
	key := keySubject(nil, owner, node.Key)
	var buffer [128]byte
	for to > from {
		value, since, err := c.Store.Newest(ctx, t, partition, c.moments.block(to-1), buffer[:0])
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return c.Unreadable(ctx, t, partition, c.moments.block(to-1), err)
		}
		begin := max(from, c.moments.from(since)) // from if there is no row
		if len(value) == 0 {
			l.Hold(audit.Found, subject, nil, begin, to) // never equals an expected hash
		} else {
			blob, err := archive.EncodeLeaf(owner, node.Rest, value)
			if err != nil {
				return c.Unreadable(ctx, t, partition, since, err)
			}
			l.Hold(audit.Found, subject, crypto.Keccak256(blob), begin, to)
			l.Hold(audit.Expected, key, value, begin, to)
		}
		to = begin
	}
	return nil
}

// flat returns the table and partition of a leaf's value: accounts (owner zero) or slots.
func (c *checker) flat(owner, key common.Hash) (*kv.Table, []byte) {
	if owner == (common.Hash{}) {
		return c.tables.Accounts, key[:]
	}
	partition := archive.SlotKey(owner, key)
	return c.tables.Slots, partition[:]
}
