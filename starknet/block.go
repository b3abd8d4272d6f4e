// Package starknet holds the nouns of Starknet-like networks: blocks of
// transactions, each with its receipt and the events that it emitted.
//
// The nouns hold what a feeder gateway and a node's JSON-RPC both tell, in one
// form, whichever of the two a block came from. What a source does not tell is
// left at its zero value.
package starknet

import (
	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// Header is what is said of a block beside its transactions.
type Header struct {
	Number    uint64
	Hash      Felt
	Parent    Felt // hash of the block before
	NewRoot   Felt // of the state after the block
	Timestamp uint64
	Sequencer Felt   // address; zero in blocks of a time before it was told
	Version   string // of Starknet, like "0.13.1"; empty in blocks of a time before it was told
	Status    Status

	L1GasPrice     GasPrice
	L1DataGasPrice GasPrice
	L2GasPrice     GasPrice
	L1DataMode     L1DataMode

	Commitments Commitments
}

// Ref names the block. Every felt is a hash to those who know of no family.
func (h *Header) Ref() chain.Ref {
	return chain.Ref{Number: h.Number, Hash: common.Hash(h.Hash)}
}

// GasPrice is a price of gas in both of the tokens that fees are paid in.
type GasPrice struct{ Wei, Fri Felt }

// Commitments are the roots over a block's contents that its hash is made of.
type Commitments struct {
	Transactions    Felt
	Events          Felt
	Receipts        Felt // since 0.13.2
	StateDiff       Felt // since 0.13.2
	StateDiffLength uint64
}

// Status is how far a block has come.
type Status uint8

// The stages of a block.
const (
	AcceptedOnL2 Status = iota + 1
	AcceptedOnL1
	Rejected // it was accepted once
)

// L1DataMode is where a block's state differences are published.
type L1DataMode uint8

// The places of state differences. Blocks of a time before there was a choice are Calldata.
const (
	Calldata L1DataMode = iota
	Blob
)

// Block is everything that one block brings. It is not changed once it is made.
type Block struct {
	Header
	Transactions []Transaction
}

// EventCount is the number of events of all transactions.
func (b *Block) EventCount() int {
	n := 0
	for i := range b.Transactions {
		n += len(b.Transactions[i].Receipt.Events)
	}
	return n
}
