package cassandra

import (
	"context"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// slowHosts lets statements go first to nodes that answer. A node that hangs keeps its
// connections, and the driver takes most of a minute to give it up. Until then every
// statement that it gets first waits for speculation.
//
// A node is slow if an attempt at it failed or was overtaken after speculateAfter. It is
// asked last then, except for one statement in each probeEvery, until it answers one.
//
// It is the policy below the token-aware one, which asks the replicas that are local first,
// and then those that Pick returns: a slow node is not local.
type slowHosts struct {
	gocql.HostSelectionPolicy
	test gocql.QueryObserver // also notified; nil: none

	mu    sync.Mutex
	probe map[string]time.Time       // guarded by mu; of each slow node by its ID, when it is asked again
	all   map[string]*gocql.HostInfo // guarded by mu; the nodes that can be asked, by ID
}

const probeEvery = time.Second

func newSlowHosts(below gocql.HostSelectionPolicy, test gocql.QueryObserver) *slowHosts {
	return &slowHosts{HostSelectionPolicy: below, test: test, probe: map[string]time.Time{}, all: map[string]*gocql.HostInfo{}}
}

// AddHost implements gocql.HostSelectionPolicy.
func (h *slowHosts) AddHost(host *gocql.HostInfo) {
	h.add(host)
	h.HostSelectionPolicy.AddHost(host)
}

// HostUp implements gocql.HostSelectionPolicy.
func (h *slowHosts) HostUp(host *gocql.HostInfo) {
	h.add(host)
	h.HostSelectionPolicy.HostUp(host)
}

// RemoveHost implements gocql.HostSelectionPolicy.
func (h *slowHosts) RemoveHost(host *gocql.HostInfo) {
	h.remove(host)
	h.HostSelectionPolicy.RemoveHost(host)
}

// HostDown implements gocql.HostSelectionPolicy.
func (h *slowHosts) HostDown(host *gocql.HostInfo) {
	h.remove(host)
	h.HostSelectionPolicy.HostDown(host)
}

func (h *slowHosts) add(host *gocql.HostInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[host.HostID()] = host
}

func (h *slowHosts) remove(host *gocql.HostInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, host.HostID())
	delete(h.probe, host.HostID())
}

// up returns the number of nodes that can be asked.
func (h *slowHosts) up() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, host := range h.all {
		if host.IsUp() {
			n++
		}
	}
	return n
}

// speculation has further nodes asked if one is slow. The driver takes the first result. If it is to ask a
// further node and there is none, that is the result: the statement fails, although the nodes that were
// asked may still answer. So no more nodes are asked than are up. That is not a bound for those that the driver has left
// to ask: if one fails at once, the next has been asked in its place. Then the statement fails, and retry tries it again.
type speculation struct {
	hosts *slowHosts
	most  int // further nodes
	after time.Duration
}

// Attempts implements gocql.SpeculativeExecutionPolicy.
func (s speculation) Attempts() int { return max(0, min(s.most, s.hosts.up()-1)) }

// Delay implements gocql.SpeculativeExecutionPolicy.
func (s speculation) Delay() time.Duration { return s.after }

// observe takes the outcome of an attempt.
func (h *slowHosts) observe(host *gocql.HostInfo, took time.Duration, err error) {
	if host == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		delete(h.probe, host.HostID())
	case took >= speculateAfter:
		h.probe[host.HostID()] = time.Now().Add(probeEvery)
	}
}

// asked reports whether a node is to be asked in its turn.
func (h *slowHosts) asked(host *gocql.HostInfo) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, slow := h.probe[host.HostID()]
	if now := time.Now(); slow && !now.Before(at) {
		h.probe[host.HostID()] = now.Add(probeEvery) // by this statement alone
		return true
	}
	return !slow
}

// IsLocal implements gocql.HostSelectionPolicy.
func (h *slowHosts) IsLocal(host *gocql.HostInfo) bool {
	return h.HostSelectionPolicy.IsLocal(host) && h.asked(host)
}

// Pick implements gocql.HostSelectionPolicy.
func (h *slowHosts) Pick(statement gocql.ExecutableStatement) gocql.NextHost {
	next := h.HostSelectionPolicy.Pick(statement)
	var last []gocql.SelectedHost
	return func() gocql.SelectedHost {
		for host := next(); host != nil; host = next() {
			if h.asked(host.Info()) {
				return host
			}
			last = append(last, host)
		}
		if len(last) == 0 {
			return nil
		}
		host := last[0]
		last = last[1:]
		return host
	}
}

// ObserveQuery implements gocql.QueryObserver.
func (h *slowHosts) ObserveQuery(ctx context.Context, q gocql.ObservedQuery) {
	h.observe(q.Host, q.End.Sub(q.Start), q.Err)
	if h.test != nil {
		h.test.ObserveQuery(ctx, q)
	}
}

// ObserveBatch implements gocql.BatchObserver.
func (h *slowHosts) ObserveBatch(ctx context.Context, b gocql.ObservedBatch) {
	h.observe(b.Host, b.End.Sub(b.Start), b.Err)
	if h.test != nil {
		h.test.ObserveQuery(ctx, gocql.ObservedQuery{Statement: b.Statements[0], Start: b.Start, End: b.End, Host: b.Host, Err: b.Err})
	}
}
