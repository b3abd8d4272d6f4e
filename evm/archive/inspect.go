package archive

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

	"ashlar/evm"
	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// This file exposes an archive row by row, for checkers.

// TableSet names the tables of an EVM network.
type TableSet struct {
	Headers, Bodies, Receipts, AccessLists *kv.Table // the data of a block
	BlockHashes, TxHashes, LogPostings     *kv.Table // derived from the data
	TraceCounts, TracePostings, TxChanges  *kv.Table // the trace index
	Accounts, Slots, Codes, TrieNodes      *kv.Table // the state
}

// NamedTables returns the tables listed by [Tables], by name.
func NamedTables() TableSet {
	return TableSet{
		Headers: headers, Bodies: bodies, Receipts: receipts, AccessLists: accessLists,
		BlockHashes: blockHashes, TxHashes: txHashes, LogPostings: logPostings,
		TraceCounts: traceCounts, TracePostings: tracePostings, TxChanges: txChanges,
		Accounts: accounts, Slots: slots, Codes: codes, TrieNodes: trieNodes,
	}
}

// Own lists the tables with the data of blocks. [History.EncodeBlock] writes them and those of
// Derived.
func (t TableSet) Own() []*kv.Table {
	return []*kv.Table{t.Headers, t.Bodies, t.Receipts, t.AccessLists}
}

// Derived lists the tables whose rows can be computed from those of Own.
func (t TableSet) Derived() []*kv.Table { return []*kv.Table{t.BlockHashes, t.TxHashes, t.LogPostings} }

// DescribeKey describes a row's key, except its block, for messages.
func DescribeKey(t *kv.Table, partition []byte, sort uint64) string {
	switch {
	case t == headers || t == bodies || t == receipts || t == accessLists || t == traceCounts || t == txChanges:
		want := rows.Chunk(sort)
		if bytes.Equal(partition, want[:]) {
			return fmt.Sprintf("block %d", sort)
		}
		return fmt.Sprintf("block %d in the partition %#x, where its chunk is %#x", sort, partition, want)
	case t == blockHashes && len(partition) == rows.HashPrefixBytes:
		return fmt.Sprintf("a block hash that begins with %#x", partition)
	case t == txHashes && len(partition) == rows.HashPrefixBytes:
		return fmt.Sprintf("transaction %d, a hash that begins with %#x", sort&(1<<rows.IndexBits-1), partition)
	case t == accounts && len(partition) == common.HashLength:
		return fmt.Sprintf("the account whose address has the hash %#x", partition)
	case t == slots && len(partition) == 2*common.HashLength:
		return fmt.Sprintf("the slot with the hash %#x of the account whose address has the hash %#x", partition[common.HashLength:], partition[:common.HashLength])
	case t == codes && len(partition) == common.HashLength && sort == 0:
		return fmt.Sprintf("the code with the hash %#x", partition)
	case t == trieNodes:
		if owner, path, err := ParseNodeKey(partition); err == nil {
			return describeNode(owner, path)
		}
	case t == logPostings && len(partition) == len(postings.Term{}):
		return fmt.Sprintf("term %#x", partition)
	case t == tracePostings && len(partition) == len(Participant{}):
		return fmt.Sprintf("the address %#x as %s", partition[:common.AddressLength], Role(partition[common.AddressLength]))
	}
	return fmt.Sprintf("invalid key: partition %#x, sort key %d", partition, sort)
}

func describeNode(owner common.Hash, path []byte) string {
	trie := "the account trie"
	if owner != (common.Hash{}) {
		trie = fmt.Sprintf("the storage trie of the account whose address has the hash %#x", owner)
	}
	if len(path) == 0 {
		return "the root of " + trie
	}
	const digits = "0123456789abcdef"
	nibbles := make([]byte, len(path))
	for i, nibble := range path {
		nibbles[i] = digits[nibble]
	}
	return fmt.Sprintf("the node at path %s of %s", nibbles, trie)
}

// ParseHeader decodes a row of headers.
func ParseHeader(value []byte) (*Header, error) { return decodeHeader(value) }

// ParseAccount decodes a row of accounts; nil for a deleted account. It rejects values that
// [Archive.Append] does not write.
func ParseAccount(value []byte) (*types.StateAccount, error) {
	account, err := DecodeAccount(value)
	if err == nil && !bytes.Equal(AppendAccount(nil, account), value) {
		err = fmt.Errorf("%w: accounts row: not the canonical encoding", ErrCorrupt)
	}
	return account, err
}

// CheckSlot rejects values of a row of slots that [Archive.Append] does not write.
func CheckSlot(value []byte) error {
	if len(value) > common.HashLength || len(value) > 0 && value[0] == 0 {
		return fmt.Errorf("%w: slots row: invalid value %#x (want a word without leading zeros)", ErrCorrupt, value)
	}
	return nil
}

// SlotKey returns the partition of a slot.
func SlotKey(address, slot common.Hash) [2 * common.HashLength]byte { return slotKey(address, slot) }

// AppendNodeKey appends the partition of a trie node to dst.
func AppendNodeKey(dst []byte, owner common.Hash, path []byte) []byte {
	return appendNodeKey(dst, owner, string(path))
}

// ParseNodeKey decodes the partition of a row of trie_nodes. The path has one nibble per
// byte and refers to partition.
func ParseNodeKey(partition []byte) (owner common.Hash, path []byte, err error) {
	switch {
	case len(partition) > 0 && partition[0] == 0:
		path = partition[1:]
	case len(partition) > common.HashLength && partition[0] == 1:
		owner, path = common.Hash(partition[1:1+common.HashLength]), partition[1+common.HashLength:]
	}
	valid := len(partition) > 0 && len(path) <= 2*common.HashLength && (owner == common.Hash{}) == (partition[0] == 0)
	for _, nibble := range path {
		valid = valid && nibble < 16
	}
	if !valid {
		return owner, nil, fmt.Errorf("%w: trie_nodes: invalid node key %#x", ErrCorrupt, partition)
	}
	return owner, path, nil
}

// TrieNode is the value of a row of trie_nodes. It refers to the row.
type TrieNode struct {
	Gone bool        // the node was deleted
	Blob []byte      // RLP of a branch or an extension
	Rest []byte      // rest of a leaf's key, hex-prefix encoded
	Key  common.Hash // whole key of a leaf
	// IsDifference means that the row has only the changes of a branch relative to the row
	// before. [NewestNode] returns the whole branch.
	IsDifference bool
}

// ParseNode decodes a row of trie_nodes at a path.
func ParseNode(path, value []byte) (node TrieNode, err error) {
	switch {
	case len(value) == 0:
		node.Gone = true
	case value[0] == nodeWhole:
		node.Blob = value[1:]
		if _, leaf := leafKey(node.Blob); leaf {
			err = fmt.Errorf("%w: trie_nodes row: a leaf that includes its value", ErrCorrupt)
		}
	case value[0] == nodeBase:
		node.Blob = value[1:]
		if _, ok := splitBranch(node.Blob); !ok {
			err = fmt.Errorf("%w: trie_nodes row: a base that is not a branch", ErrCorrupt)
		}
	case value[0] == nodeLeaf:
		var ok bool
		if node.Rest = value[1:]; len(node.Rest) > 0 {
			node.Key, ok = fullKey(path, node.Rest)
		}
		if !ok || node.Rest[0]&^0x1f != 0x20 || node.Rest[0] < 0x30 && node.Rest[0] != 0x20 {
			err = fmt.Errorf("%w: trie_nodes row: invalid rest of a key %#x", ErrCorrupt, node.Rest)
		}
	case value[0] == nodeDifference:
		node.IsDifference = true
		_, err = decodeDifference(value)
	default:
		err = fmt.Errorf("%w: trie_nodes row: it begins with %d, expected 0 to 3", ErrCorrupt, value[0])
	}
	return node, err
}

// EncodeLeaf returns the RLP of a leaf. rest is the hex-prefix encoded rest of its key; row
// is the non-empty row with its value, from accounts if owner is zero, else from slots.
func EncodeLeaf(owner common.Hash, rest, row []byte) ([]byte, error) {
	if owner != (common.Hash{}) {
		value, err := rlp.EncodeToBytes(row)
		if err != nil {
			return nil, err
		}
		return encodeLeaf(rest, value)
	}
	account, err := DecodeAccount(row)
	if err != nil {
		return nil, err
	}
	value, err := rlp.EncodeToBytes(account)
	if err != nil {
		return nil, err
	}
	return encodeLeaf(rest, value)
}

// ReadBlock returns a block with what [History.EncodeBlock] needs, and its total difficulty.
func ReadBlock(ctx context.Context, a *Archive, number uint64) (*evm.Delta, *big.Int, error) {
	header, err := a.Header(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	body, err := a.Body(ctx, number, nil)
	if err != nil {
		return nil, nil, err
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return nil, nil, err
	}
	stored, err := a.Receipts(ctx, number, nil)
	if err != nil {
		return nil, nil, err
	}
	delta := &evm.Delta{Block: block}
	for i, transaction := range block.Transactions() {
		if i >= stored.Len() {
			return nil, nil, fmt.Errorf("%w: block %d has %d receipts and %d transactions", ErrCorrupt, number, stored.Len(), len(block.Transactions()))
		}
		receipt, err := stored.Whole(i, transaction.Type())
		if err != nil {
			return nil, nil, err
		}
		delta.Receipts, delta.Senders = append(delta.Receipts, receipt), append(delta.Senders, body.Sender(i))
	}
	if header.BlockAccessListHash != nil {
		if delta.AccessList, err = a.AccessList(ctx, number); err != nil {
			return nil, nil, err
		}
	}
	return delta, header.TotalDifficulty, nil
}
