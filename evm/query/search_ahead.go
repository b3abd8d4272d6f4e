package query

import (
	"context"
	"sync"
	"sync/atomic"

	"ashlar/kv"
)

const (
	// blocksAhead is how many blocks after the one that is traced run aside.
	blocksAhead = 8
	// aheadFor is how many blocks run aside after one whose replay has waited. The one after them is traced alone, to learn
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
	search context.Context
	view   *View
	blocks int // of the search
	find   func(ctx context.Context, i int) (number uint64, transactions []int, err error)

	// All below is nil or 0 before a replay has waited.
	ctx          context.Context // of the runs aside
	cancel       context.CancelFunc
	unbind       func() bool         // from the context of the search
	begun, until int                 // the first block that has not begun to run aside, and the first one that is not going to
	ahead        map[int]*blockAhead // by block: those that have begun, and are not traced yet
	runs         sync.WaitGroup
}

// blockAhead is a block that runs aside, or waits for a place to.
type blockAhead struct {
	cancel context.CancelFunc
	placed atomic.Bool
}

// SearchAhead returns what runs ahead of a search for traces in so many blocks. The caller must stop it. find returns the number of the
// i-th block, and the transactions that are traced, in ascending order; nil: all. Several goroutines call it.
func (v *View) SearchAhead(ctx context.Context, blocks int, find func(ctx context.Context, i int) (number uint64, transactions []int, err error)) *SearchAhead {
	return &SearchAhead{search: ctx, view: v, blocks: blocks, find: find}
}

// Traced is called when the i-th block has been traced. ranAside is what [execute.Replay.RanAside] has returned.
func (s *SearchAhead) Traced(i int, ranAside bool) {
	if traced := s.ahead[i]; traced != nil { // what it still reads has been read, or was a wrong guess
		traced.cancel()
		delete(s.ahead, i)
	}
	if next := s.ahead[i+1]; next != nil && !next.placed.Load() { // its own replay is as early
		next.cancel()
	}
	if ranAside && i >= s.until {
		s.prepare()
		s.begun, s.until = i+2, i+2+aheadFor // the next one is traced now
	}
	for ; s.begun < min(s.until, s.blocks, i+2+blocksAhead); s.begun++ {
		s.begin(s.begun)
	}
}

// prepare makes the context of the runs aside. It ends with that of the search, but has none of its values: they belong to the
// goroutine that answers, such as how the answer is verified, and the slot that a call may leave.
func (s *SearchAhead) prepare() {
	if s.ctx == nil {
		s.ahead = make(map[int]*blockAhead)
		s.ctx, s.cancel = context.WithCancel(kv.Aside(context.Background()))
		s.unbind = context.AfterFunc(s.search, s.cancel)
	}
}

// begin begins to run the i-th block aside. An error or a panic recurs when it is traced.
func (s *SearchAhead) begin(i int) {
	ctx, cancel := context.WithCancel(s.ctx)
	block := &blockAhead{cancel: cancel}
	s.ahead[i] = block
	s.runs.Go(func() {
		defer func() { _ = recover() }()
		leave, err := s.view.Executor().EnterAside(ctx)
		if err != nil {
			return
		}
		defer leave()
		block.placed.Store(true)
		if number, transactions, err := s.find(ctx, i); err == nil {
			s.view.replayAside(ctx, number, transactions)
		}
	})
}

// Stop ends the runs aside.
func (s *SearchAhead) Stop() {
	if s.ctx != nil {
		s.unbind()
		s.cancel()
		s.runs.Wait()
	}
}
