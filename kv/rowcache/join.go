package rowcache

import (
	"context"
	"encoding/binary"
	"sync"

	"ashlar/kv"
)

// underWay has reads that are under way, so that equal ones wait for them instead of being made again. Transactions that run side by
// side read the same nodes at the top of a trie, and many clients ask for the same account at the same moment.
//
// A read in it reads only the store: it never waits for another one, so no two wait for each other.
type underWay struct {
	mu    sync.Mutex
	reads map[string]chan struct{} // by how much is read, table, partition and sort key; closed at the end of the read; guarded by mu
}

// How much is read from a sort key on.
const (
	oneRow byte = iota
	severalRows
)

// join waits for an equal read that is under way, if there is one, until it or ctx ends. What that read found is known then, unless
// it failed, or looked for a row by its name that does not exist. A caller waits for at most one other read: then it reads for itself.
//
// If there is none and begin is true, others may wait for the read that the caller makes. The caller calls ended after it has kept what it
// read; this does nothing if the read does not begin here. Nobody waits for rows that may still change, because they are not kept.
func (s *Store) join(ctx context.Context, t *kv.Table, partition []byte, sort uint64, rows byte, begin bool) (joined bool, ended func()) {
	ended = func() {}
	m := s.begin(ctx)
	if !m.known || t.Transient || sort > last(t, m.settled) {
		return false, ended
	}
	var room [keyRoom]byte
	k := binary.BigEndian.AppendUint64(append(append(room[:0], rows, t.ID), partition...), sort)
	u := &s.underWay
	u.mu.Lock()
	end, joined := u.reads[string(k)]
	if !joined && begin {
		ended = u.begin(string(k))
	}
	u.mu.Unlock()
	if !joined {
		return false, ended
	}
	if !m.ahead {
		s.waited(ctx)
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
	return true, ended
}

// begin adds a read, and returns what ends it. u.mu is held.
func (u *underWay) begin(k string) (ended func()) {
	end := make(chan struct{})
	u.reads[k] = end
	return func() {
		u.mu.Lock()
		delete(u.reads, k)
		u.mu.Unlock()
		close(end)
	}
}
