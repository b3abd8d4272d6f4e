package usage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Series identifies a method of a network. It is valid within one process.
type Series int

// series is the network and method that a Series identifies.
type series struct{ network, method string }

// Meter counts the calls made with one key. It is safe for concurrent use. Counting does not
// block, except that failed calls of one series wait for each other. A nil Meter counts
// nothing.
type Meter struct {
	cells atomic.Pointer[[]*cell] // by Series; replaced as a whole, immutable
	grow  sync.Mutex              // held while cells is replaced
}

// cell counts the calls of one series. Each counter is read and reset separately, so one
// call's counts may end up in two flushes, but each is counted exactly once.
type cell struct {
	credits atomic.Uint64
	micros  atomic.Uint64
	bytes   atomic.Uint64
	latency [Buckets]atomic.Uint64

	failing sync.Mutex
	failed  Counts // guarded by failing: only Errors, Refused and Codes
}

// Called counts an answered call. code is that of its error; 0 if it has succeeded.
func (m *Meter) Called(s Series, took time.Duration, code int) {
	if m == nil {
		return
	}
	c := m.cell(s)
	c.took(took)
	if code != 0 {
		c.failing.Lock()
		defer c.failing.Unlock()
		c.failed.Errors++
		c.failed.fail(code, 1)
	}
}

// Refused counts a call that was refused.
func (m *Meter) Refused(s Series, took time.Duration, cause Cause) {
	if m == nil {
		return
	}
	c := m.cell(s)
	c.took(took)
	c.failing.Lock()
	defer c.failing.Unlock()
	c.failed.Errors++
	c.failed.refuse(cause, 1)
}

func (c *cell) took(took time.Duration) {
	c.latency[bucketOf(took)].Add(1)
	c.micros.Add(uint64(max(0, took.Microseconds())))
}

// Spent counts the cost of a call.
func (m *Meter) Spent(s Series, credits int) {
	if m != nil && credits > 0 {
		m.cell(s).credits.Add(uint64(credits))
	}
}

// Sent counts the bytes of a result or a message.
func (m *Meter) Sent(s Series, bytes int) {
	if m != nil && bytes > 0 {
		m.cell(s).bytes.Add(uint64(bytes))
	}
}

func (m *Meter) cell(s Series) *cell {
	if cells := m.cells.Load(); cells != nil && int(s) < len(*cells) && (*cells)[s] != nil {
		return (*cells)[s]
	}
	m.grow.Lock()
	defer m.grow.Unlock()
	var cells []*cell
	if before := m.cells.Load(); before != nil {
		cells = slices.Clone(*before)
	}
	if missing := int(s) + 1 - len(cells); missing > 0 {
		cells = append(cells, make([]*cell, missing)...)
	}
	if cells[s] == nil {
		cells[s] = new(cell)
	}
	m.cells.Store(&cells)
	return cells[s]
}

// take resets the counters and returns their values, by series.
func (m *Meter) take() map[Series]Counts {
	cells := m.cells.Load()
	if cells == nil {
		return nil
	}
	taken := make(map[Series]Counts)
	for i, c := range *cells {
		if c == nil {
			continue
		}
		n := c.takeFailed()
		n.Credits, n.Bytes = c.credits.Swap(0), c.bytes.Swap(0)
		n.Time = time.Duration(c.micros.Swap(0)) * time.Microsecond
		for b := range c.latency {
			n.Latency[b] = c.latency[b].Swap(0)
			n.Requests += n.Latency[b]
		}
		if !n.zero() {
			taken[Series(i)] = n
		}
	}
	return taken
}

func (c *cell) takeFailed() Counts {
	c.failing.Lock()
	defer c.failing.Unlock()
	n := c.failed
	c.failed = Counts{}
	return n
}
