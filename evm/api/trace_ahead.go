package api

import (
	"context"
	"sync"

	"ashlar/evm/query"
	"ashlar/kv"
)

const (
	// blocksAhead is how far a search runs ahead of the block that it traces.
	blocksAhead = 8
	// aheadFor is how many blocks it runs ahead after one whose replay has waited. Then it traces a block alone, to learn
	// whether replays still wait: in a process that has read these blocks before, they would only run twice.
	aheadFor = 32
)

// searchAhead runs transactions of the next blocks of a search aside while a block is traced, if replays wait for reads that take
// round trips:
//
//	traced   | 5: waits, waits ... | 6: waits, waits ... | 7 | 8 | 9 | ...
//	aside                          | 7: waits ...        |
//	                               | 8: waits ...        |
//
// It belongs to one goroutine, and must be stopped.
type searchAhead struct {
	ctx    context.Context // of the runs aside
	cancel context.CancelFunc
	view   *query.View
	blocks int // of the search
	// find returns the number of the i-th block, and the transactions that are traced, in ascending order; nil: all. Several
	// goroutines call it.
	find func(ctx context.Context, i int) (number uint64, transactions []int, err error)

	begun, until int // the first block that has not begun to run aside, and the first one that is not going to
	runs         sync.WaitGroup
}

func newSearchAhead(ctx context.Context, view *query.View, blocks int, find func(ctx context.Context, i int) (number uint64, transactions []int, err error)) *searchAhead {
	s := &searchAhead{view: view, blocks: blocks, find: find}
	s.ctx, s.cancel = context.WithCancel(kv.Aside(ctx))
	return s
}

// traced is called when the i-th block has been traced. waited says whether its replay has waited.
func (s *searchAhead) traced(i int, waited bool) {
	if waited && i >= s.until {
		s.begun, s.until = i+2, i+2+aheadFor // the next one is traced now
	}
	for ; s.begun < min(s.until, s.blocks, i+1+blocksAhead); s.begun++ {
		next := s.begun
		s.runs.Go(func() { s.run(next) })
	}
}

// run runs the i-th block aside. An error recurs when it is traced.
func (s *searchAhead) run(i int) {
	if number, transactions, err := s.find(s.ctx, i); err == nil {
		s.view.ReplayAside(s.ctx, number, transactions)
	}
}

func (s *searchAhead) stop() {
	s.cancel()
	s.runs.Wait()
}
