package archive

import (
	"ashlar/history/rows"
	"ashlar/kv"
)

// The tables of a Starknet network. docs/format.md draws their keys and values. IDs are never
// reused.
var (
	headers       = &kv.Table{ID: 0x50, Name: "starknet_headers", Kind: kv.List, Expected: true}
	transactions  = &kv.Table{ID: 0x51, Name: "starknet_transactions", Kind: kv.List, Expected: true}
	events        = &kv.Table{ID: 0x52, Name: "starknet_events", Kind: kv.List, Expected: true, IndexBits: groupBits, Single: true}
	blockHashes   = &kv.Table{ID: 0x53, Name: "starknet_block_hashes", Kind: kv.List}
	txHashes      = &kv.Table{ID: 0x54, Name: "starknet_transaction_hashes", Kind: kv.List, Expected: true, IndexBits: rows.IndexBits}
	eventPostings = &kv.Table{ID: 0x55, Name: "starknet_event_postings", Kind: kv.List}
)

// Tables lists this package's tables, for maintenance.
func Tables() []*kv.Table {
	return []*kv.Table{headers, transactions, events, blockHashes, txHashes, eventPostings}
}

// The pointers of a Starknet network, in addition to those of every family.
const (
	pointerChain = "chain" // the chain's ID, as text
	pointerFirst = "first" // number of the first block
)

const (
	// groupEvents is how many of a block's events share a row: enough that a page of
	// consecutive events needs few rows, few enough that a single event is cheap to read.
	groupEvents = 32
	// groupBits are the low bits of the sort key of events: the position of the group in the
	// block. The remaining bits hold rows.MaxNumber.
	groupBits = rows.IndexBits
)
