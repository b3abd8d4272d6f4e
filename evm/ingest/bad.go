package ingest

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"ashlar/evm/execute"
)

// Bounds of the invalid blocks that are kept, as many as in geth.
const (
	maxBadBlocks     = 10
	maxBadBlockBytes = 64 << 20
)

// badBlocks keeps the last invalid blocks. They are lost when the process ends.
type badBlocks struct {
	mu   sync.Mutex
	last []*execute.CheckError // guarded by mu: oldest first
}

// record keeps the block of err, if it is that of an invalid block.
func (b *badBlocks) record(err error) {
	var refused *execute.CheckError
	if !errors.As(err, &refused) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.last, func(known *execute.CheckError) bool { return known.Hash == refused.Hash }) {
		return
	}
	b.last = append(b.last, refused)
	for len(b.last) > maxBadBlocks || len(b.last) > 1 && b.size() > maxBadBlockBytes {
		b.last = slices.Delete(b.last, 0, 1)
	}
}

// size is the size of the encoded blocks. mu is held.
func (b *badBlocks) size() (bytes uint64) {
	for _, refused := range b.last {
		bytes += refused.Block.Size()
	}
	return bytes
}

// BadBlocks returns the last invalid blocks with their faults, the highest first.
func (f *Follower) BadBlocks() []*execute.CheckError {
	f.bad.mu.Lock()
	defer f.bad.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(f.bad.last), func(a, b *execute.CheckError) int { return cmp.Compare(b.Number, a.Number) })
}
