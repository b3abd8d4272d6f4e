// Package starknet defines the data types of Starknet-like networks: blocks of transactions
// with their receipts and events.
//
// They contain what both feeder gateways and nodes provide, in one form for both sources.
// Fields that a source does not provide are zero.
package starknet

import (
	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// Header is a block without its transactions.
type Header struct {
	Number    uint64
	Hash      Felt
	Parent    Felt // hash of the parent block
	NewRoot   Felt // state root after the block
	Timestamp uint64
	Sequencer Felt   // address; zero in early blocks
	Version   string // of Starknet, such as "0.13.1"; empty in early blocks
	Status    Status

	L1GasPrice     GasPrice
	L1DataGasPrice GasPrice
	L2GasPrice     GasPrice
	L1DataMode     L1DataMode

	Commitments Commitments
}

// Ref returns the number and hash of the block.
func (h *Header) Ref() chain.Ref {
	return chain.Ref{Number: h.Number, Hash: common.Hash(h.Hash)}
}

// GasPrice is a price of gas in both fee tokens.
type GasPrice struct{ Wei, Fri Felt }

// Commitments are the commitments to a block's contents that its hash covers.
type Commitments struct {
	Transactions    Felt
	Events          Felt
	Receipts        Felt // since 0.13.2
	StateDiff       Felt // since 0.13.2
	StateDiffLength uint64
}

// Status is the finality of a block.
type Status uint8

// The possible statuses.
const (
	AcceptedOnL2 Status = iota + 1
	AcceptedOnL1
	Rejected // after having been accepted
)

// L1DataMode is where a block's state diff is published.
type L1DataMode uint8

// The data modes. Early blocks, which had no choice, are Calldata.
const (
	Calldata L1DataMode = iota
	Blob
)

// Block is a block with its transactions. It is immutable once complete.
type Block struct {
	Header
	Transactions []Transaction
}

// EventCount returns the number of events in the block.
func (b *Block) EventCount() int {
	n := 0
	for i := range b.Transactions {
		n += len(b.Transactions[i].Receipt.Events)
	}
	return n
}
