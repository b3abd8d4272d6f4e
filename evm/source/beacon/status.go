package beacon

import (
	"cmp"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Status is what a light client sees.
type Status struct {
	Problem       string      // why the head stays; empty if it follows
	Checkpoint    common.Hash // that is configured
	Slot          uint64      // the present one, by this clock; 0 before the chain is known
	Head          Slot        // the newest header that is verified
	Finalized     Slot        // the last finalized one
	PeriodsBehind uint64      // periods of sync committees from the finalized header to the present
	Named         time.Time   // when the head or the finalized block last changed; zero before the first
	Nodes         []NodeStatus
}

// Slot is a beacon block's slot.
type Slot struct {
	Number uint64
	Time   time.Time
	Block  common.Hash // its block of the execution layer
}

// NodeStatus is how a node behaves.
type NodeStatus struct {
	Name     string
	Slot     uint64    // the newest that it named, which need not be true
	Usable   bool      // it is asked
	Why      string    // why its last answer was not used, or that it is slow; else empty
	Aside    time.Time // until then it is set aside because of false data; zero: it is not
	Failures uint64    // requests without an answer
	Invalid  uint64    // answers that no honest node gives
}

// Status returns what the light client sees now.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.config.Now()
	s := f.status
	for _, n := range f.nodes {
		node := NodeStatus{Name: n.name, Slot: n.slot, Usable: n.usable(now), Why: cmp.Or(n.why, n.slow(now)), Failures: n.failures, Invalid: n.invalid}
		if now.Before(n.aside) {
			node.Aside = n.aside
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

// Aside returns why no node is asked: all are set aside because of false data. It returns nil if
// one is not.
func (f *Follower) Aside() error {
	for _, n := range f.Status().Nodes {
		if n.Aside.IsZero() {
			return nil
		}
	}
	return errors.New("all beacon nodes are set aside because of false data: " + f.Status().Problem)
}

// see changes the status.
func (f *Follower) see(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// note records why the head stays.
func (f *Follower) note(err error) {
	before := f.Status().Problem
	why := ""
	if err != nil {
		why = err.Error()
	}
	f.see(func(s *Status) { s.Problem = why })
	switch {
	case err == nil && before != "":
		s := f.Status()
		f.config.Log.Info("the light client follows", "slot", s.Head.Number, "finalized", s.Finalized.Number)
	case err != nil && before != why:
		f.config.Log.Warn("the light client does not follow", "because", why)
	}
}
