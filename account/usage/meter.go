package usage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Series names a method of a network, as it is counted apart from others. It is a number
// of one process.
type Series int

// series is what a Series stands for.
type series struct{ network, method string }

// Meter counts what is done with one key. It may be used from many goroutines at once,
// and none waits for another. A nil Meter counts nothing.
type Meter struct {
	cells atomic.Pointer[[]*cell] // by Series; replaced, never changed
	grow  sync.Mutex              // held by whoever replaces cells
}

// cell counts the calls of one series. Each count is read, and begins again, by itself:
// every call is counted once, though not everything of it at once.
type cell struct {
	errors  atomic.Uint64
	credits atomic.Uint64
	micros  atomic.Uint64
	latency [Buckets]atomic.Uint64
}

// Called counts a call that has been answered.
func (m *Meter) Called(s Series, took time.Duration, failed bool) {
	if m == nil {
		return
	}
	c := m.cell(s)
	c.latency[bucketOf(took)].Add(1)
	c.micros.Add(uint64(max(0, took.Microseconds())))
	if failed {
		c.errors.Add(1)
	}
}

// Spent counts what a call cost.
func (m *Meter) Spent(s Series, credits int) {
	if m != nil && credits > 0 {
		m.cell(s).credits.Add(uint64(credits))
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

// take returns what was counted since the last time, by series.
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
		n := Counts{
			Errors: c.errors.Swap(0), Credits: c.credits.Swap(0), Time: time.Duration(c.micros.Swap(0)) * time.Microsecond,
		}
		for b := range c.latency {
			n.Latency[b] = c.latency[b].Swap(0)
			n.Requests += n.Latency[b]
		}
		if n != (Counts{}) {
			taken[Series(i)] = n
		}
	}
	return taken
}
