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
	reads map[string]*sharedRead // by what readKey returns; guarded by mu
}

// sharedRead is a read that others may wait for.
type sharedRead struct {
	end    chan struct{} // closed at the end of the read
	absent bool          // the one row that was read does not exist; written before end is closed
}

// readKey appends what names a read of rows of a partition from a sort key on, or from it downwards. It returns false if rows
// there may still change, so that what is read is not kept and nothing is gained by waiting for it.
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

// join waits for the end of an equal read that is under way, or of ctx, and returns that read; nil if there is none. What the read found
// is known now, unless it failed or found nothing. A caller waits for at most one other read: then it reads for itself.
func (s *Store) join(ctx context.Context, t *kv.Table, partition []byte, sort uint64) *sharedRead {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort)
	if !ok {
		return nil
	}
	s.underWay.mu.Lock()
	read := s.underWay.reads[string(k)]
	s.underWay.mu.Unlock()
	if read != nil {
		s.awaitEnd(ctx, m, read)
	}
	return read
}

// joinOrBegin is join, but if no equal read is under way, the caller makes one that others wait for. The caller must call ended after it
// has kept what it read, and say whether the one row that it read does not exist.
func (s *Store) joinOrBegin(ctx context.Context, t *kv.Table, partition []byte, sort uint64) (joined *sharedRead, ended func(absent bool)) {
	m := s.begin(ctx)
	var room [keyRoom]byte
	k, ok := s.readKey(room[:0], m, t, partition, sort)
	if !ok {
		return nil, func(bool) {}
	}
	u := &s.underWay
	u.mu.Lock()
	if read := u.reads[string(k)]; read != nil {
		u.mu.Unlock()
		s.awaitEnd(ctx, m, read)
		return read, func(bool) {}
	}
	defer u.mu.Unlock()
	name, read := string(k), &sharedRead{end: make(chan struct{})}
	u.reads[name] = read
	return nil, func(absent bool) {
		u.mu.Lock()
		delete(u.reads, name)
		u.mu.Unlock()
		read.absent = absent
		close(read.end)
	}
}

func (s *Store) awaitEnd(ctx context.Context, m mark, read *sharedRead) {
	if !m.ahead {
		s.waited(ctx)
	}
	select {
	case <-read.end:
	case <-ctx.Done():
	}
}

// isAbsent reports whether the read has ended and found that its row does not exist.
func (r *sharedRead) isAbsent() bool {
	select {
	case <-r.end:
		return r.absent
	default:
		return false
	}
}
