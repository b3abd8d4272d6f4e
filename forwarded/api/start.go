package api

import (
	"ashlar/forwarded"

	"github.com/ethereum/go-ethereum/common"
)

// start is where a subscriber or filter begins.
type start struct {
	view  *forwarded.View // of the chain when the client subscribed
	round uint64          // until which blocks are published that the view may have; 0: none
	// heard says of the blocks of these rounds whether the last notification added them. The head
	// may leave the view and come back to it while they are published.
	heard map[common.Hash]bool
}

// wants reports whether a client that begins here is to be notified of a block in a round.
func (s *start) wants(u *update) bool {
	if u.round > s.round {
		return true
	}
	has, ok := s.heard[u.block.Hash]
	if !ok {
		_, has = s.view.Number(u.block.Hash)
	}
	return has == u.dropped
}

// passed records that the client was notified of a block, or not, as wants said.
func (s *start) passed(u *update) {
	if u.round > s.round {
		s.view, s.heard = nil, nil // not needed any more
		return
	}
	if s.heard == nil {
		s.heard = make(map[common.Hash]bool)
	}
	s.heard[u.block.Hash] = !u.dropped
}
