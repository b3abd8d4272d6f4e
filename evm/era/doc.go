// Package era reads and writes history files: archives of up to 8192 consecutive
// blocks with their receipts, as nodes that prune old blocks publish them. They are
// e2store files, a list of entries with a type and a length each, in one of two formats:
//
//	era1  blocks before the merge:
//	      Version  (Header Body Receipts TotalDifficulty)+  other*  Accumulator  BlockIndex
//	ERE   blocks of any time:
//	      Version  Header+  Body+  SlimReceipts*  Proof*  TotalDifficulty*  other*  Accumulator?  DynamicBlockIndex
//
// Both are specified at https://github.com/eth-clients/e2store-format-specs.
//
// A [Reader] checks everything that a file says: the links between headers, the sums
// of their difficulties, the accumulator, the index, and of each block the roots of
// its transactions, uncles, withdrawals and receipts. A file that is cut short, corrupt
// or hostile yields an [Error] that names the place, never a panic, a wrong block, or
// more memory than in proportion to the bytes that the file really holds. Proofs
// against the beacon chain are the exception: they need roots of that chain, which no
// history file holds, and are counted by [Reader.Unchecked].
//
// [Write] writes the same bytes as go-ethereum does for the same blocks.
package era

import "fmt"

// MaxBlocks is how many blocks a history file has at most. It is also the limit of
// the list that an accumulator is the root of.
const MaxBlocks = 8192

// Format is one of the two formats of history files.
type Format byte

const (
	Era1 Format = iota // blocks before the merge
	ERE                // blocks of any time
)

// Extension is how the names of a format's files end.
func (f Format) Extension() string {
	if f == ERE {
		return ".ere"
	}
	return ".era1"
}

// Error says what is wrong with a history file, and where.
type Error struct {
	Offset int64 // of the faulty entry, in bytes from the beginning
	Blocks int   // blocks of the file before the fault
	Err    error // what was found and what was expected
}

func (e *Error) Error() string {
	return fmt.Sprintf("at byte %d, after %d whole blocks: %v", e.Offset, e.Blocks, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
