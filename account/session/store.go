// Package session stores the sessions of users who are signed in to the dashboard, next to
// their accounts. [Store] is a session store for scs.
//
// A session is stored under the SHA-256 of its token, so a reader of the store cannot take
// over a session. A crash can lose the last moments of a session: that it began, or that it
// was used. A session that has ended never comes back.
//
// While the store refuses writes, sessions are held in memory: users must be able to sign
// in and revoke their keys then, and signing out must work.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"ashlar/account"
	"ashlar/kv"

	"github.com/alexedwards/scs/v2"
)

// sessions holds the revisions of every session; the greatest is current. A revision removes the
// one before, because a client decides how often its session changes.
//
// partition  SHA-256 of the session's token
// sort       revision; the constant ended for a session that has ended
// value      state    1 byte, stateOpen or stateEnded
//
//	expires  8 bytes, Unix seconds
//	data     the rest; empty once the session has ended
var sessions = &kv.Table{ID: 0x43, Name: "sessions", Kind: kv.Versions, Transient: true}

// Tables lists this package's tables, for maintenance.
func Tables() []*kv.Table { return []*kv.Table{sessions} }

const (
	stateOpen  = 0x01
	stateEnded = 0x02
	fixedLen   = 1 + 8

	ended = math.MaxUint64 // the sort key of the last revision: nothing can follow it
)

const (
	// prolongTime is the least extension of a session that is worth a write. Every use of a
	// session extends it.
	prolongTime = time.Minute
	cleanTime   = 10 * time.Minute // between clean-ups of expired sessions
	saveTime    = 10 * time.Second // between attempts to write held sessions
)

// Store stores sessions. It is safe for concurrent use.
type Store struct {
	store kv.Store
	now   func() time.Time
	write sync.Mutex // held from reading the newest revision until the next is written

	mu   sync.RWMutex
	held map[hash]revision // guarded by mu; revisions that the store refused, newer than its own
}

// maxHeld bounds how many sessions are held in memory. Ends of sessions are always held.
const maxHeld = 10_000

var _ scs.CtxStore = (*Store)(nil)

// NewStore returns a session store in store, which must stay open as long as it is in use.
// A nil now means time.Now.
func NewStore(store kv.Store, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{store: store, now: now, held: make(map[hash]revision)}
}

// Find implements scs.Store.
func (s *Store) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s *Store) Commit(token string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expires)
}

// Delete implements scs.Store.
func (s *Store) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// FindCtx implements scs.CtxStore.
func (s *Store) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	p := partition(token)
	newest, err := s.newest(ctx, p)
	if err != nil || newest == nil || newest.over(s.now()) {
		return nil, false, err
	}
	track(ctx, p, newest.data)
	return newest.data, true, nil
}

// CommitCtx implements scs.CtxStore. It does not revive a session that has ended, and keeps what other
// requests have changed since one of [Track] has loaded the session.
func (s *Store) CommitCtx(ctx context.Context, token string, data []byte, expires time.Time) error {
	p := partition(token)
	s.write.Lock()
	defer s.write.Unlock()
	newest, err := s.newest(ctx, p)
	if err != nil {
		return err
	}
	next := revision{state: stateOpen, expires: expires, data: data}
	if newest != nil {
		if newest.state == stateEnded {
			trackEnd(ctx)
			return nil
		}
		if next.data = merged(loadedBefore(ctx, p), data, newest.data); newest.covers(&next) {
			return nil
		}
		next.number, next.replaces = newest.number+1, newest.written()
	}
	return s.put(ctx, p, &next)
}

// DeleteCtx implements scs.CtxStore. When it returns, the session has ended. The deletion
// is durable, unless the store refuses writes.
func (s *Store) DeleteCtx(ctx context.Context, token string) error {
	p := partition(token)
	s.write.Lock()
	defer s.write.Unlock()
	newest, err := s.newest(ctx, p)
	if err != nil || newest == nil || newest.state == stateEnded {
		return err
	}
	return s.put(ctx, p, &revision{state: stateEnded, expires: newest.expires, number: ended, replaces: newest.written()})
}

// Run deletes expired sessions periodically until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	clean, save := time.NewTicker(cleanTime), time.NewTicker(saveTime)
	defer clean.Stop()
	defer save.Stop()
	s.tidy(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clean.C:
			s.tidy(ctx)
		case <-save.C:
			s.save(ctx)
		}
	}
}

func (s *Store) tidy(ctx context.Context) {
	if _, err := s.Clean(ctx); err != nil && ctx.Err() == nil {
		slog.Error("cannot delete expired sessions: trying again", "error", err)
	}
}

// save writes held sessions until the store refuses one.
func (s *Store) save(ctx context.Context) {
	s.mu.RLock()
	held := maps.Clone(s.held)
	s.mu.RUnlock()
	for p := range held {
		if !s.saveOne(ctx, p) {
			return
		}
	}
}

// saveOne writes a held session, and reports whether the store accepted it.
func (s *Store) saveOne(ctx context.Context, p hash) bool {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	r, ok := s.held[p]
	s.mu.RUnlock()
	if !ok {
		return true
	}
	if r.over(s.now()) && r.state == stateOpen {
		s.release(p)
		return true
	}
	if err := s.writeRow(ctx, p[:], &r); err != nil {
		return false
	}
	s.release(p)
	return true
}

func (s *Store) release(p hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, p)
}

// Clean deletes sessions that have expired or ended, and returns how many.
func (s *Store) Clean(ctx context.Context) (dropped int, err error) {
	over := make(map[hash]struct{})
	for row, err := range s.store.Walk(ctx, sessions, 0) {
		if err != nil {
			return 0, fmt.Errorf("sessions: %w", err)
		}
		r, err := decode(row.Value)
		if err == nil && len(row.Partition) != len(hash{}) {
			err = fmt.Errorf("a partition of %d bytes, expected %d", len(row.Partition), len(hash{}))
		}
		if err != nil {
			return 0, fmt.Errorf("sessions: %w", err)
		}
		if !s.now().Before(r.expires) {
			over[hash(row.Partition)] = struct{}{}
		}
	}
	for p := range over {
		ok, err := s.dropIfOver(ctx, p[:])
		if err != nil {
			return dropped, err
		}
		if ok {
			dropped++
		}
	}
	return dropped, nil
}

// Forget implements [account.Belongings]: it drops the sessions of an account. They are found
// by their values, which begin with the account's ID.
func (s *Store) Forget(ctx context.Context, id account.ID, _ []account.KeyID) error {
	found := make(map[hash]struct{})
	for row, err := range s.store.Walk(ctx, sessions, 0) {
		if err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
		r, err := decode(row.Value)
		if err == nil && len(row.Partition) == len(hash{}) && r.of(id) {
			found[hash(row.Partition)] = struct{}{}
		}
	}
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	maps.DeleteFunc(s.held, func(_ hash, r revision) bool { return r.of(id) })
	s.mu.Unlock()
	for p := range found {
		if err := s.store.Drop(ctx, sessions, p[:]); err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
	}
	if err := s.store.Sync(ctx); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	return nil
}

// of reports whether a revision is of a session of an account, or of one that waits for its
// second factor: an [account.Session] or [account.Pending] begins with its ID.
func (r *revision) of(id account.ID) bool {
	_, values, err := scs.GobCodec{}.Decode(r.data)
	if err != nil {
		return false // it has ended, and has no data
	}
	for _, value := range values {
		if text, ok := value.(string); ok && strings.HasPrefix(text, id.String()+".") {
			return true
		}
	}
	return false
}

// dropIfOver deletes a session of which one row is over, if its newest row is over too.
func (s *Store) dropIfOver(ctx context.Context, p []byte) (bool, error) {
	s.write.Lock()
	defer s.write.Unlock()
	newest, err := s.newest(ctx, p)
	if err != nil || newest == nil || s.now().Before(newest.expires) {
		return false, err
	}
	if err := s.store.Drop(ctx, sessions, p); err != nil {
		return false, fmt.Errorf("sessions: %w", err)
	}
	return true, nil
}

type hash = [sha256.Size]byte

func partition(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// revision is one revision of a session.
type revision struct {
	state   byte
	expires time.Time
	data    []byte
	number  uint64
	// replaces is the number of the newest stored revision before, which this one removes; nil:
	// there is none.
	replaces *uint64
	held     bool // in memory; not stored
}

// written returns the number of the newest stored revision when r is the newest one; nil: none is.
func (r *revision) written() *uint64 {
	if r.held {
		return r.replaces
	}
	return &r.number
}

func (r *revision) over(now time.Time) bool {
	return r.state == stateEnded || !now.Before(r.expires)
}

// newest returns the newest revision of a session, or nil.
func (s *Store) newest(ctx context.Context, p []byte) (*revision, error) {
	s.mu.RLock()
	held, ok := s.held[hash(p)]
	s.mu.RUnlock()
	if ok {
		return &held, nil
	}
	value, number, err := s.store.Newest(ctx, sessions, p, ended, nil)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	r, err := decode(value)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	r.number = number
	return r, nil
}

// put writes a revision, or holds it in memory if the store refuses writes. The write lock
// is held.
func (s *Store) put(ctx context.Context, p []byte, r *revision) error {
	err := s.writeRow(ctx, p, r)
	if err == nil {
		s.release(hash(p))
		return nil
	}
	if !errors.Is(err, kv.ErrFull) && !errors.Is(err, kv.ErrFailed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[hash(p)]; !ok && len(s.held) >= maxHeld && r.state == stateOpen {
		return err
	}
	kept := *r
	kept.held = true
	s.held[hash(p)] = kept
	return nil
}

// writeRow writes a revision. The end of a session is durable when it returns.
func (s *Store) writeRow(ctx context.Context, p []byte, r *revision) error {
	value := binary.BigEndian.AppendUint64([]byte{r.state}, uint64(r.expires.Unix()))
	b := s.store.NewBatch()
	b.Put(sessions, p, r.number, append(value, r.data...))
	if r.replaces != nil {
		b.Delete(sessions, p, *r.replaces)
	}
	err := s.store.Write(ctx, b)
	if err == nil && r.state == stateEnded {
		err = s.store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	return nil
}

func decode(value []byte) (*revision, error) {
	if len(value) < fixedLen || value[0] != stateOpen && value[0] != stateEnded {
		return nil, fmt.Errorf("damaged row of %d bytes: expected %#x or %#x and a time", len(value), stateOpen, stateEnded)
	}
	return &revision{
		state: value[0], expires: time.Unix(int64(binary.BigEndian.Uint64(value[1:])), 0), data: value[fixedLen:],
	}, nil
}
