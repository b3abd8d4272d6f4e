package audit

import (
	"sync/atomic"
	"time"
)

// Progress reports how far a running check is. It is safe for concurrent use. A nil Progress
// can be passed to a check whose progress is not needed.
type Progress struct {
	stage atomic.Pointer[stage]
	done  atomic.Uint64
	total atomic.Uint64
	rows  atomic.Uint64
}

// stage is a part of a check: reading one table, or checking the blocks.
type stage struct {
	name  string
	begun time.Time
}

// Now returns the current stage, empty before the first, its start, the fraction of it that
// is done, and the number of rows read in all stages.
func (p *Progress) Now() (name string, since time.Time, share float64, rows uint64) {
	if s := p.stage.Load(); s != nil {
		name, since = s.name, s.begun
	}
	if total := p.total.Load(); total > 0 {
		share = min(1, float64(p.done.Load())/float64(total))
	}
	return name, since, share, p.rows.Load()
}

// Begin begins a stage of size total.
func (p *Progress) Begin(name string, total uint64) {
	if p == nil {
		return
	}
	p.done.Store(0)
	p.total.Store(total)
	p.stage.Store(&stage{name, time.Now()})
}

// add increases the completed part of the stage.
func (p *Progress) add(done uint64) {
	if p != nil {
		p.done.Add(done)
	}
}

// Walked sets the completed part of the stage, which reads a table, to a share of it.
func (p *Progress) Walked(share float64) {
	if p != nil {
		p.done.Store(uint64(share * float64(p.total.Load())))
	}
}

// Read counts rows.
func (p *Progress) Read(rows uint64) {
	if p != nil {
		p.rows.Add(rows)
	}
}
