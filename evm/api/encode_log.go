package api

import (
	"ashlar/chain"
	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
)

// logPlace is the position of a log: in a block, set by enter, and in one of its
// transactions.
type logPlace struct {
	pending         bool // the block is pending: the log has no position yet
	removed         bool // the block was dropped by a reorganization
	blockHash       common.Hash
	transactionHash []byte
	transaction     uint64 // its index in the block
	position        uint64 // of the log in the block

	// number and block are the encoded members that all logs of the block share: an answer
	// has many logs of few blocks.
	number, block []byte
}

// Capacities of the encoded members in logPlace.
const (
	numberBytes = 48
	blockBytes  = 144
)

// enter sets the block of the logs that follow.
func (p *logPlace) enter(block chain.Ref, time uint64) {
	if p.number == nil {
		room := make([]byte, numberBytes+blockBytes)
		p.number, p.block = room[:0:numberBytes], room[numberBytes:]
	}
	p.blockHash = block.Hash
	p.number = appendQuantity(append(p.number[:0], `,"blockNumber":`...), block.Number)
	p.block = appendHex(append(p.block[:0], `,"blockHash":`...), block.Hash[:])
	p.block = appendQuantity(append(p.block, `,"blockTimestamp":`...), time)
}

// leave resets the block.
func (p *logPlace) leave() { p.number, p.block, p.transactionHash = p.number[:0], p.block[:0], nil }

// appendLog appends a log.
func appendLog(out []byte, log *archive.Log, place *logPlace) []byte {
	out = append(out, `{"address":`...)
	out = appendHex(out, log.Address[:])
	out = append(out, `,"topics":[`...)
	for topics := log.Topics; len(topics) > 0; {
		out = appendHex(out, topics[:common.HashLength])
		if topics = topics[common.HashLength:]; len(topics) > 0 {
			out = append(out, ',')
		}
	}
	out = append(out, `],"data":`...)
	out = appendHex(out, log.Data)
	if place.pending {
		return append(out, `,"blockNumber":null,"transactionHash":null,"transactionIndex":null,"blockHash":null,"blockTimestamp":null,"logIndex":null,"removed":false}`...)
	}
	out = append(out, place.number...)
	out = append(out, `,"transactionHash":`...)
	out = appendHex(out, place.transactionHash)
	out = append(out, `,"transactionIndex":`...)
	out = appendQuantity(out, place.transaction)
	out = append(out, place.block...)
	out = append(out, `,"logIndex":`...)
	out = appendQuantity(out, place.position)
	if place.removed {
		return append(out, `,"removed":true}`...)
	}
	return append(out, `,"removed":false}`...)
}
