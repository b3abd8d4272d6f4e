package query

import (
	"context"
	"sync"

	"ashlar/kv"
)

const (
	// blocksAhead is how far a search runs ahead of the block that it traces.
	blocksAhead = 8
	// aheadFor is how many blocks it runs ahead after one whose replay has waited. Then it traces a block alone, to learn
	// whether replays still wait: in a process that has read these blocks before, they would only run twice.
	aheadFor = 32
)

// SearchAhead runs transactions of the next blocks of a search aside while a block is traced, if replays wait for reads that take
// round trips:
//
//	traced   | 5: waits, waits ... | 6: waits, waits ... | 7 | 8 | 9 | ...
//	aside                          | 7: waits ...        |
//	                               | 8: waits ...        |
//
// It belongs to one goroutine, and must be stopped.
type SearchAhead struct {
	ctx    context.Context // of the runs aside
	cancel context.CancelFunc
	view   *View
	blocks int // of the search
	find   func(ctx context.Context, i int) (number uint64, transactions []int, err error)

	begun, until int // the first block that has not begun to run aside, and the first one that is not going to
	runs         sync.WaitGroup
}

// SearchAhead returns what runs ahead of a search for traces in so many blocks. find returns the number of the i-th one, and the
// transactions that are traced, in ascending order; nil: all. Several goroutines call it.
func (v *View) SearchAhead(ctx context.Context, blocks int, find func(ctx context.Context, i int) (number uint64, transactions []int, err error)) *SearchAhead {
	s := &SearchAhead{view: v, blocks: blocks, find: find}
	s.ctx, s.cancel = context.WithCancel(kv.Aside(ctx))
	return s
}

// Traced is called when the i-th block has been traced. waited says whether its replay has waited.
func (s *SearchAhead) Traced(i int, waited bool) {
	if waited && i >= s.until {
		s.begun, s.until = i+2, i+2+aheadFor // the next one is traced now
	}
	for ; s.begun < min(s.until, s.blocks, i+1+blocksAhead); s.begun++ {
		next := s.begun
		s.runs.Go(func() { s.run(next) })
	}
}

// run runs the i-th block aside. An error or a panic recurs when it is traced.
func (s *SearchAhead) run(i int) {
	defer func() { _ = recover() }()
	if number, transactions, err := s.find(s.ctx, i); err == nil {
		s.view.replayAside(s.ctx, number, transactions)
	}
}

// Stop ends the runs aside.
func (s *SearchAhead) Stop() {
	s.cancel()
	s.runs.Wait()
}
