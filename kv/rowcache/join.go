package rowcache

import (
	"context"
	"encoding/binary"
	"sync"

	"ashlar/kv"
)

// underWay has reads that are under way, so that equal ones wait for them instead of being made again. When a block
// arrives, many ask for its rows at the same moment, and transactions of a block that run side by side read the same nodes at the
// top of a trie.
//
// A read in it reads only the store: it never waits for another one, so no two wait for each other.
type underWay struct {
	mu    sync.Mutex
	reads map[string]chan struct{} // by what readKey returns; closed at the end of the read; guarded by mu
}

// readKey appends what names a read of rows of a partition from a sort key on, or from it downwards. It returns false if what is read
// would not be kept, so that nothing is gained by waiting for it.
func (s *Store) readKey(dst []byte, m mark, t *kv.Table, partition []byte, sort uint64) ([]byte, bool) {
	if !m.known || t.Transient || sort > last(t, m.settled) {
		return dst, false
	}
	dst = key(dst, t, partition, sort)
	if named(t) {
		return dst, true
	}
	return binary.BigEndian.AppendUint64(dst, sort), true
}

// join waits for the end of an equal read that is under way, or of ctx, and returns true: if the read did not fail, what it found is
// known now. Nobody waits for a second one: if it failed, the caller takes twice as long as alone.
func (s *Store) join(ctx context.Context, t *kv.Table, partition []byte, sort uint64) bool {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort)
	if !ok {
		return false
	}
	s.underWay.mu.Lock()
	end, ok := s.underWay.reads[string(k)]
	s.underWay.mu.Unlock()
	return ok && s.awaitEnd(ctx, m, end)
}

// joinOrBegin is join, but if no equal read is under way, the caller makes one that others wait for. The caller must call ended after it
// has kept what it read.
func (s *Store) joinOrBegin(ctx context.Context, t *kv.Table, partition []byte, sort uint64) (joined bool, ended func()) {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort)
	if !ok {
		return false, func() {}
	}
	u := &s.underWay
	u.mu.Lock()
	end, ok := u.reads[string(k)]
	if ok {
		u.mu.Unlock()
		return s.awaitEnd(ctx, m, end), func() {}
	}
	defer u.mu.Unlock()
	name := string(k)
	end = make(chan struct{})
	u.reads[name] = end
	return false, func() {
		u.mu.Lock()
		delete(u.reads, name)
		u.mu.Unlock()
		close(end)
	}
}

func (s *Store) awaitEnd(ctx context.Context, m mark, end <-chan struct{}) bool {
	if !m.ahead {
		s.waited(ctx)
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
	return true
}
