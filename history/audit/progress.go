package audit

import (
	"sync/atomic"
	"time"
)

// Progress says how far a check is, to whoever asks while it runs. A nil Progress
// may be given to a check that nobody watches.
type Progress struct {
	stage atomic.Pointer[stage]
	done  atomic.Uint64
	total atomic.Uint64
	rows  atomic.Uint64
}

// stage is one of the parts of a check: a table that is read, or the blocks.
type stage struct {
	name  string
	begun time.Time
}

// Now returns what is being checked, empty before the first, since when, which
// share of that is done, and how many rows were read in all.
func (p *Progress) Now() (name string, since time.Time, share float64, rows uint64) {
	if s := p.stage.Load(); s != nil {
		name, since = s.name, s.begun
	}
	if total := p.total.Load(); total > 0 {
		share = min(1, float64(p.done.Load())/float64(total))
	}
	return name, since, share, p.rows.Load()
}

// begin begins a stage, of which total is the whole.
func (p *Progress) begin(name string, total uint64) {
	if p == nil {
		return
	}
	p.done.Store(0)
	p.total.Store(total)
	p.stage.Store(&stage{name, time.Now()})
}

// add adds to what is done of the stage.
func (p *Progress) add(done uint64) {
	if p != nil {
		p.done.Add(done)
	}
}

// at sets what is done of the stage.
func (p *Progress) at(done uint64) {
	if p != nil {
		p.done.Store(done)
	}
}

func (p *Progress) read(rows uint64) {
	if p != nil {
		p.rows.Add(rows)
	}
}
