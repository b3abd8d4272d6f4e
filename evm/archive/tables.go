package archive

import (
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// The tables of an EVM network. docs/format.md draws their keys and values;
// identifiers are never reused.
var (
	headers       = &kv.Table{ID: 0x10, Name: "headers", Kind: kv.List, Expected: true}
	bodies        = &kv.Table{ID: 0x11, Name: "bodies", Kind: kv.List, Expected: true}
	receipts      = &kv.Table{ID: 0x12, Name: "receipts", Kind: kv.List, Expected: true}
	blockHashes   = &kv.Table{ID: 0x13, Name: "block_hashes", Kind: kv.List}
	txHashes      = &kv.Table{ID: 0x14, Name: "transaction_hashes", Kind: kv.List, Expected: true, IndexBits: rows.IndexBits}
	accessLists   = &kv.Table{ID: 0x15, Name: "access_lists", Kind: kv.List, Expected: true}
	traceCounts   = &kv.Table{ID: 0x16, Name: "trace_counts", Kind: kv.List, Expected: true}
	txChanges     = &kv.Table{ID: 0x17, Name: "transaction_changes", Kind: kv.List, Expected: true}
	accounts      = &kv.Table{ID: 0x20, Name: "accounts", Kind: kv.Versions}
	slots         = &kv.Table{ID: 0x21, Name: "slots", Kind: kv.Versions}
	codes         = &kv.Table{ID: 0x22, Name: "codes", Kind: kv.List, Expected: true}
	trieNodes     = &kv.Table{ID: 0x23, Name: "trie_nodes", Kind: kv.Versions, Expected: true, Apart: true}
	logPostings   = &kv.Table{ID: 0x30, Name: "log_postings", Kind: kv.List}
	tracePostings = &kv.Table{ID: 0x31, Name: "trace_postings", Kind: kv.Versions}
)

// Tables lists every table of an EVM network, for maintenance.
func Tables() []*kv.Table {
	return []*kv.Table{headers, bodies, receipts, blockHashes, txHashes, accessLists, traceCounts, txChanges, accounts, slots, codes, trieNodes, logPostings, tracePostings}
}

// The pointers of an EVM network that are not common to all families.
const (
	pointerGenesis = "genesis" // JSON of the genesis without its accounts
	pointerFirst   = "first"   // where the history begins: [Extent]
	pointerOlder   = "older"   // the lowest block that an [Older] adds
	pointerJoin    = "join"    // what is being joined: [Joining]
	pointerRemoved = "removed" // the history before which everything is removed: [Archive.Removed]
	pointerStart   = "start"   // what a network starts from, and how far that is: [Start]

	pointerStartSource = "start_source" // where the rows of a start come from: [Beginning.Source]
)

// slotKey returns the partition of a storage slot.
func slotKey(address, slot common.Hash) (key [2 * common.HashLength]byte) {
	appendSlotKey(key[:0], address, slot)
	return key
}

// appendSlotKey appends the partition of a storage slot.
func appendSlotKey(dst []byte, address, slot common.Hash) []byte {
	return append(append(dst, address[:]...), slot[:]...)
}

// appendNodeKey appends the partition of a trie node: a byte for the kind of trie, the
// owner of a storage trie, and the path, one nibble per byte.
func appendNodeKey(dst []byte, owner common.Hash, path string) []byte {
	if owner == (common.Hash{}) {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		dst = append(dst, owner[:]...)
	}
	return append(dst, path...)
}
