package archive

import (
	"ashlar/history/rows"
	"ashlar/kv"
)

// The tables of a Starknet network. docs/format.md draws their keys and values;
// identifiers are never reused.
var (
	headers       = &kv.Table{ID: 0x50, Name: "starknet_headers", Kind: kv.List, Expected: true}
	transactions  = &kv.Table{ID: 0x51, Name: "starknet_transactions", Kind: kv.List, Expected: true}
	events        = &kv.Table{ID: 0x52, Name: "starknet_events", Kind: kv.List, Expected: true, IndexBits: groupBits}
	blockHashes   = &kv.Table{ID: 0x53, Name: "starknet_block_hashes", Kind: kv.List}
	txHashes      = &kv.Table{ID: 0x54, Name: "starknet_transaction_hashes", Kind: kv.List, IndexBits: rows.IndexBits}
	eventPostings = &kv.Table{ID: 0x55, Name: "starknet_event_postings", Kind: kv.List}
)

// Tables lists every table of a Starknet network, for maintenance.
func Tables() []*kv.Table {
	return []*kv.Table{headers, transactions, events, blockHashes, txHashes, eventPostings}
}

// The pointers of a Starknet network, beside those of every family.
const (
	pointerChain = "chain" // the chain's ID, as text
	pointerFirst = "first" // number of the first block
)

const (
	// groupEvents is how many of a block's events share a row: enough that a page
	// of neighbours takes few rows, few enough that an event alone costs little.
	groupEvents = 32
	// groupBits of an event row's sort key are the group's position in the block. They
	// leave room for rows.MostNumber.
	groupBits = rows.IndexBits
)
