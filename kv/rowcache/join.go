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
	reads map[string]chan struct{} // by what readKey returns; closed at the end of the read; guarded by mu
}

// What is read from a sort key on, or from it downwards.
const (
	oneRow byte = iota
	severalRows
)

// readKey appends what names a read of rows of a partition. It returns false if rows there may still change, so that what is read is not
// kept and nothing is gained by waiting for it.
func (s *Store) readKey(dst []byte, m mark, t *kv.Table, partition []byte, sort uint64, rows byte) ([]byte, bool) {
	if !m.known || t.Transient || sort > last(t, m.settled) {
		return dst, false
	}
	dst = key(append(dst, rows), t, partition, sort)
	if named(t) {
		return dst, true
	}
	return binary.BigEndian.AppendUint64(dst, sort), true
}

// join waits for the end of an equal read that is under way, or of ctx, and reports whether there is one. What the read found is known
// now, unless it failed, or was of one row by its name that does not exist. A caller waits for at most one other read: then it reads
// for itself.
func (s *Store) join(ctx context.Context, t *kv.Table, partition []byte, sort uint64, rows byte) bool {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort, rows)
	if !ok {
		return false
	}
	s.underWay.mu.Lock()
	end, ok := s.underWay.reads[string(k)]
	s.underWay.mu.Unlock()
	if ok {
		s.awaitEnd(ctx, m, end)
	}
	return ok
}

// joinOrBegin is join, but if no equal read is under way, the caller makes one that others wait for. The caller must call ended after it
// has kept what it read.
func (s *Store) joinOrBegin(ctx context.Context, t *kv.Table, partition []byte, sort uint64, rows byte) (joined bool, ended func()) {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort, rows)
	if !ok {
		return false, func() {}
	}
	u := &s.underWay
	u.mu.Lock()
	if end, ok := u.reads[string(k)]; ok {
		u.mu.Unlock()
		s.awaitEnd(ctx, m, end)
		return true, func() {}
	}
	defer u.mu.Unlock()
	name, end := string(k), make(chan struct{})
	u.reads[name] = end
	return false, func() {
		u.mu.Lock()
		delete(u.reads, name)
		u.mu.Unlock()
		close(end)
	}
}

func (s *Store) awaitEnd(ctx context.Context, m mark, end <-chan struct{}) {
	if !m.ahead {
		s.waited(ctx)
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
}
