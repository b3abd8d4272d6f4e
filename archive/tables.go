package archive

import (
	"encoding/binary"

	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// The tables of an EVM network. docs/format.md draws their keys and values;
// identifiers are never reused.
var (
	headers     = &kv.Table{ID: 0x10, Name: "headers", Kind: kv.List}
	bodies      = &kv.Table{ID: 0x11, Name: "bodies", Kind: kv.List}
	receipts    = &kv.Table{ID: 0x12, Name: "receipts", Kind: kv.List}
	blockHashes = &kv.Table{ID: 0x13, Name: "block_hashes", Kind: kv.List}
	txHashes    = &kv.Table{ID: 0x14, Name: "transaction_hashes", Kind: kv.List}
	accounts    = &kv.Table{ID: 0x20, Name: "accounts", Kind: kv.Versions}
	slots       = &kv.Table{ID: 0x21, Name: "slots", Kind: kv.Versions}
	codes       = &kv.Table{ID: 0x22, Name: "codes", Kind: kv.List}
	trieNodes   = &kv.Table{ID: 0x23, Name: "trie_nodes", Kind: kv.Versions}
	postings    = &kv.Table{ID: 0x30, Name: "log_postings", Kind: kv.List}
)

// Tables lists every table of an EVM network, for maintenance.
func Tables() []*kv.Table {
	return []*kv.Table{headers, bodies, receipts, blockHashes, txHashes, accounts, slots, codes, trieNodes, postings}
}

// The pointers of an EVM network.
const (
	pointerFormat  = "format"  // the version of docs/format.md that the rows follow
	pointerGenesis = "genesis" // JSON of the genesis without its accounts
	pointerSettled = "settled" // number and hash of the last settled block
)

const (
	// chunkBits is how many blocks share a partition of the tables that hold
	// a row a block: enough to lie together, few enough for a distributed
	// engine's partitions.
	chunkBits = 10
	// hashPrefixBytes of a hash are enough to find it again: what is found is
	// compared with the whole hash.
	hashPrefixBytes = 6
	// indexBits of a transaction's sort key are its position in the block.
	indexBits = 20
)

// chunk is the partition of a block's rows in headers, bodies and receipts.
func chunk(number uint64) [8]byte {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], number>>chunkBits)
	return key
}

// slotKey is the partition of a storage slot.
func slotKey(address, slot common.Hash) (key [2 * common.HashLength]byte) {
	copy(key[:], address[:])
	copy(key[common.HashLength:], slot[:])
	return key
}

// appendNodeKey appends the partition of a trie node: a byte that says which
// trie, the owner of a storage trie, and the path, a nibble a byte.
func appendNodeKey(dst []byte, owner common.Hash, path string) []byte {
	if owner == (common.Hash{}) {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		dst = append(dst, owner[:]...)
	}
	return append(dst, path...)
}
