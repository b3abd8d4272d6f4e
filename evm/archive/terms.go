package archive

import (
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// AddressTerm returns the term of the logs of an address.
func AddressTerm(address common.Address) postings.Term { return postings.TermOf(0, address[:]) }

// TopicTerm returns the term of the logs with a topic at a position, 0 to 3.
func TopicTerm(position int, topic common.Hash) postings.Term {
	return postings.TermOf(byte(position)+1, topic[:])
}

// blockPostings returns the positions of the terms of a block's logs.
func blockPostings(receipts types.Receipts) *postings.Block[postings.Term] {
	block := postings.NewBlock[postings.Term]()
	var position uint64
	for _, receipt := range receipts {
		for _, log := range receipt.Logs {
			block.Add(AddressTerm(log.Address), position)
			for i, topic := range log.Topics {
				block.Add(TopicTerm(i, topic), position)
			}
			position++
		}
	}
	return block
}
