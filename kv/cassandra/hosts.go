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
	probe map[string]time.Time // guarded by mu; of each slow node by its ID, when it is asked again
}

const probeEvery = time.Second

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
