package node

import "sync"

// Status is how a node has stood since it was first asked.
type Status struct {
	Name     string // the host of its URL
	Head     uint64 // the last block that it told of
	Problem  string // of the last question, where it was not answered as it should
	Failures uint64 // questions that were not answered, or not in a way that can be read
	Invalid  uint64 // blocks that failed the check, and answers that contradict each other
}

// Status says how the node stands now.
func (n *Node) Status() Status { return n.record.now() }

// record is what is noted of a node.
type record struct {
	mu     sync.Mutex // guards what follows
	status Status
}

func (r *record) now() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// answered notes a right answer.
func (r *record) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Problem = ""
}

func (r *record) head(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Head = number
}

// failed notes what was wrong: an answer that was invalid, or none.
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
