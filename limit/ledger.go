package limit

import "sync"

// Ledger counts bytes that callers hold for long, by the rule of [Budget]: a caller may
// hold no more than is left then.
type Ledger struct {
	max int

	mu       sync.Mutex
	held     int            // guarded by mu
	byCaller map[string]int // guarded by mu: of those that hold any
}

// NewLedger returns a ledger of max bytes.
func NewLedger(max int) *Ledger { return &Ledger{max: max, byCaller: make(map[string]int)} }

// Held is how many bytes are held now.
func (l *Ledger) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Take counts bytes for a caller, or returns false and counts nothing if the caller would
// hold more than is left.
func (l *Ledger) Take(caller string, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCaller[caller]+bytes > l.max-l.held-bytes {
		return false
	}
	l.held += bytes
	l.byCaller[caller] += bytes
	return true
}

// Give gives back bytes that a caller has taken.
func (l *Ledger) Give(caller string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= bytes
	if l.byCaller[caller] -= bytes; l.byCaller[caller] == 0 {
		delete(l.byCaller, caller)
	}
}
