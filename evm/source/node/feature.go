package node

import "sync/atomic"

// feature is one that not every node supports. Requests that need it are replaced by others.
type feature uint32

const (
	rawBlocks feature = 1 << iota
	rawReceipts
	batches
)

// features is a set of features. It is safe for concurrent use.
type features struct{ bits atomic.Uint32 }

func (s *features) has(f feature) bool { return s.bits.Load()&uint32(f) != 0 }

func (s *features) add(f feature) { s.bits.Or(uint32(f)) }

func (s *features) forget() { s.bits.Store(0) }
