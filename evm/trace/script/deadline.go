package script

import (
	"errors"
	"math"
	"sync"
	"time"
)

// errOverdue means that the worker has said of a trace that it did not end in time. Nothing may
// be sent after that.
var errOverdue = errors.New("the trace is overdue")

// deadline is the time by which the trace under way must have ended. A trace either ends or is
// overdue, never both: else what is said of one job would be read as the answer to the next.
// It is safe for concurrent use.
type deadline struct {
	timer *time.Timer // runs out at the deadline; pass tells whether it was for this trace

	mu     sync.Mutex
	at     time.Time // guarded by mu; zero: no trace is under way
	passed bool      // guarded by mu
}

func newDeadline() *deadline { return &deadline{timer: time.NewTimer(math.MaxInt64)} }

// begin says that a trace is under way, which must end within a limit.
func (d *deadline) begin(limit time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = time.Now().Add(limit)
	d.timer.Reset(limit)
}

// end says that no trace is under way any more. It returns errOverdue if the one that was is
// overdue.
func (d *deadline) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.at = time.Time{}
	if d.passed {
		return errOverdue
	}
	return nil
}

// pass reports whether the trace under way is overdue, and remembers it.
func (d *deadline) pass() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed = !d.at.IsZero() && !time.Now().Before(d.at)
	return d.passed
}
