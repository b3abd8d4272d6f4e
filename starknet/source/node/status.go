package node

import (
	"sync"
	"time"

	"ashlar/chain"
)

// Status describes a node's behaviour since the client was created.
type Status struct {
	Name     string        // the host of its URL, with a number if an earlier node of a group has the same
	Head     chain.Ref     // last known head; zero before the first
	Latency  time.Duration // of its last answer about its head; 0 before the first
	Problem  string        // error of the last request; empty if it succeeded
	Failures uint64        // requests without a readable response
	Invalid  uint64        // blocks that failed the check, and contradictory responses
}

// Status returns the current status.
func (n *Node) Status() Status { return n.record.now() }

// record collects a node's status.
type record struct {
	mu     sync.Mutex // guards status
	status Status
}

func (r *record) now() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// answered records a valid response.
func (r *record) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Problem = ""
}

// head records the node's head, and how long its answer took.
func (r *record) head(ref chain.Ref, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Head, r.status.Latency = ref, took
}

// failed records an error. invalid means that the node responded, but the response was wrong.
func (r *record) failed(err error, invalid bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Problem = err.Error()
	if invalid {
		r.status.Invalid++
	} else {
		r.status.Failures++
	}
}
