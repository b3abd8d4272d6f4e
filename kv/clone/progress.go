package clone

import (
	"sync/atomic"
	"time"
)

// Progress says how far a copy is: what was written, and then what was read back. It is safe for
// concurrent use. A nil Progress can be passed where it is not needed.
type Progress struct {
	stage atomic.Pointer[Stage]
	share atomic.Uint64 // in 1/precision
	rows  atomic.Uint64
	bytes atomic.Uint64
}

const precision = 1 << 32

// Stage is one table that is copied or verified.
type Stage struct {
	Task  string // "copying" or "verifying"
	Table string
	Begun time.Time
	From  uint64 // rows of earlier stages
}

// Now returns the current stage, nil before the first, the share of it that is done, and the
// rows and bytes of all stages so far.
func (p *Progress) Now() (stage *Stage, share float64, rows, bytes uint64) {
	return p.stage.Load(), float64(p.share.Load()) / precision, p.rows.Load(), p.bytes.Load()
}

func (p *Progress) begin(task, table string) {
	if p == nil {
		return
	}
	p.share.Store(0)
	p.stage.Store(&Stage{task, table, time.Now(), p.rows.Load()})
}

// add counts rows.
func (p *Progress) add(share float64, rows, bytes uint64) {
	if p == nil {
		return
	}
	p.rows.Add(rows)
	p.bytes.Add(bytes)
	p.share.Store(uint64(share * precision))
}
