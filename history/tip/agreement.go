package tip

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

// An agreement lets a client move between the processes that watch one store, its readers,
// without seeing the head go back. Trees are ordered by their sequence. Each reader has a
// note on the store's board with
//
//	ready   the sequence that it has loaded
//	shown   the greatest sequence that it may have shown
//	count   grows with each note: the note of a living reader changes
//
// and follows these rules:
//
//   - It shows a tree only when all living readers are ready for it, or another one may have
//     shown it or a later one. It notes that before.
//   - From before it notes that it is ready for a tree until it shows it, it reads the board
//     again for each request: if no other reader has shown a later tree than it has, it
//     answers. Otherwise it shows its new tree first.
//   - A reader whose note has not changed for deadAfter is not living. A reader whose note was
//     not acknowledged for leaseTime writes the board, loads what is new, and reads the board
//     before it answers. Others count deadAfter from a later moment, and it is longer than
//     leaseTime, so clocks need not agree.
//
// So when a reader answers by a tree, each of the others has either noted that it is ready
// for it, and looks at the board before it answers, or must renew its note first.
//
// While a reader is ready for a tree that is not shown yet, it loads no other one. The one
// with the least sequence can always be shown.
type agreement struct {
	board kv.Board
	name  string
	now   func() time.Time
	began time.Time

	// until is when answers need the board again, in nanoseconds since began; 0: now.
	until atomic.Int64
	begun atomic.Int64  // steps that have begun
	turn  chan struct{} // has an element while a step runs, which guards what follows

	sound     int64 // the last step after which the tree that is shown was as late as any
	last      note
	confirmed time.Time // when the write of the last acknowledged note began
	lapsed    bool      // nothing was loaded since others may have gone on without this reader
	peers     map[string]peer
}

// note is what a reader publishes about itself.
type note struct{ ready, shown, count uint64 }

const noteBytes = 24

// peer is another reader, by its last note.
type peer struct {
	note
	since time.Time // when this note was first read
}

const (
	leaseTime  = 2 * time.Second
	deadAfter  = 3 * time.Second
	noteEvery  = 500 * time.Millisecond
	noteKept   = time.Minute
	agreeEvery = 25 * time.Millisecond // between two looks at the board while others are waited for
	heldEvery  = 20 * time.Millisecond // the same, for a request
	heldAtMost = 5 * time.Second       // for a request
	leaveTime  = time.Second
)

// Join makes the tip agree with other processes on what is shown. It returns when the tip may
// be shown. Without a board, the tip goes on to show everything at once.
func (w *Watched) Join(ctx context.Context) error {
	board, ok := w.store.(kv.Board)
	if !ok {
		return nil
	}
	err := w.join(ctx, board, time.Now)
	if errors.Is(err, errors.ErrUnsupported) {
		w.agreement, err = nil, nil
	}
	for err == nil {
		if err = w.Current(ctx); err == nil || ctx.Err() != nil || !errors.Is(err, kv.ErrUnavailable) {
			break
		}
		slog.Info("waiting for the other readers", "error", err)
		err = nil
	}
	return err
}

// join posts the first note. What was loaded before may be older than what others show, or
// newer, so there are no answers before the first tree is shown: until then its sequence is 0.
func (w *Watched) join(ctx context.Context, board kv.Board, now func() time.Time) error {
	a := &agreement{board: board, name: rand.Text(), now: now, began: now(), turn: make(chan struct{}, 1), peers: map[string]peer{}}
	w.agreement = a
	if err := a.post(ctx, note{}); err != nil {
		return err
	}
	w.tree.Store(&tree{head: w.loaded.head, blocks: w.loaded.blocks, settled: w.loaded.settled})
	a.lapsed = false
	return w.load(ctx)
}

// Current returns when answers may be given by the tree that is shown: no client can have
// seen a later one at another reader before.
func (w *Watched) Current(ctx context.Context) error {
	a := w.agreement
	if a == nil || a.fresh() {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, heldAtMost, fmt.Errorf("tip: the readers do not agree on the head: %w", kv.ErrUnavailable))
	defer cancel()
	arrived := a.begun.Load()
	for {
		sound, err := w.stepSince(waiting, arrived)
		if waiting.Err() != nil && !sound {
			return errors.Join(context.Cause(waiting), err)
		}
		if sound || err != nil {
			return err
		}
		select {
		case <-waiting.Done():
			return context.Cause(waiting)
		case <-time.After(heldEvery):
		}
	}
}

// fresh reports whether answers may be given without a look at the board.
func (a *agreement) fresh() bool { return int64(a.now().Sub(a.began)) < a.until.Load() }

// stepSince takes a step, unless one that began after the given one has the result already.
// It reports whether answers may be given.
func (w *Watched) stepSince(ctx context.Context, arrived int64) (sound bool, err error) {
	a := w.agreement
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-a.turn }()
	if a.sound > arrived || a.fresh() {
		return true, nil
	}
	err = w.advance(ctx)
	return a.sound > arrived, err
}

// step takes a step.
func (w *Watched) step(ctx context.Context) error {
	a := w.agreement
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.turn }()
	return w.advance(ctx)
}

// advance loads a tree if none waits to be shown, and shows the one that was loaded if it may.
func (w *Watched) advance(ctx context.Context) error {
	a := w.agreement
	number := a.begun.Add(1)
	if w.loaded.sequence == w.tree.Load().sequence {
		if err := w.load(ctx); err != nil {
			return err
		}
		a.lapsed = false
	}
	shown := w.tree.Load().sequence
	if w.loaded.sequence == shown {
		w.show(w.loaded) // with another settled block, or another block that is not the head
	} else {
		a.until.Store(0)
	}
	next := note{ready: w.loaded.sequence, shown: max(a.last.shown, shown)}
	switch {
	case next.ready != a.last.ready || a.now().Sub(a.confirmed) >= noteEvery:
		if err := a.post(ctx, next); err != nil {
			return err
		}
	case a.fresh():
		return nil
	}
	ready, latest, err := a.read(ctx, w.loaded.sequence)
	if err != nil {
		return err
	}
	if w.loaded.sequence != shown && (ready || latest >= w.loaded.sequence) {
		next.shown = w.loaded.sequence
		if err := a.post(ctx, next); err != nil {
			return err
		}
		shown = w.loaded.sequence
		w.show(w.loaded)
	}
	until := a.confirmed.Add(leaseTime)
	if shown != w.loaded.sequence && shown == 0 || latest > shown || !a.now().Before(until) {
		a.until.Store(0)
		return nil
	}
	a.sound = number
	if w.loaded.sequence == shown && !a.lapsed {
		a.until.Store(int64(until.Sub(a.began)))
	}
	return nil
}

// post writes the reader's note.
func (a *agreement) post(ctx context.Context, n note) error {
	began := a.now()
	n.count = a.last.count + 1
	a.last.count, a.last.shown = n.count, n.shown // even if it fails: it may have been written
	value := make([]byte, 0, noteBytes)
	for _, number := range []uint64{n.ready, n.shown, n.count} {
		value = binary.BigEndian.AppendUint64(value, number)
	}
	if err := a.board.Post(ctx, a.name, value, noteKept); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	if a.now().Sub(a.confirmed) > leaseTime {
		a.lapsed = true
	}
	a.last, a.confirmed = n, began
	return nil
}

// read reads the notes of others. ready reports whether all that live are ready for a
// sequence; latest is the greatest one that any of them may have shown.
func (a *agreement) read(ctx context.Context, sequence uint64) (ready bool, latest uint64, err error) {
	posts, err := a.board.Posts(ctx)
	if err != nil {
		return false, 0, fmt.Errorf("tip: %w", err)
	}
	now := a.now()
	known := a.peers
	a.peers = make(map[string]peer, len(posts))
	ready = true
	for name, value := range posts {
		if name == a.name || len(value) != noteBytes {
			continue
		}
		p := peer{note{binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:]), binary.BigEndian.Uint64(value[16:])}, now}
		if before, ok := known[name]; ok && before.note == p.note {
			p.since = before.since
		}
		a.peers[name] = p
		latest = max(latest, p.shown)
		ready = ready && (p.ready >= sequence || now.Sub(p.since) > deadAfter)
	}
	return ready, latest, nil
}

// AwaitReaders returns when no process that watches the store, in which the epoch says that rows are being removed, may
// still answer from it. A reader ends when it sees that epoch, and its note is gone noteKept after that: more than the
// requests that it had begun are given. A reader that cannot renew its note answers nothing.
func AwaitReaders(ctx context.Context, store kv.Store) error {
	board, ok := store.(kv.Board)
	if !ok {
		return nil
	}
	for waiting := false; ; waiting = true {
		posts, err := board.Posts(ctx)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return nil
		case err == nil && len(posts) == 0:
			if waiting {
				slog.Info("the readers have ended; rows are removed now")
			}
			return nil
		case err != nil && !errors.Is(err, kv.ErrUnavailable):
			return fmt.Errorf("tip: wait for readers: %w", err)
		case !waiting:
			slog.Info("waiting until the readers of the network have ended, and a minute more for their requests")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// leave posts a last note, so that others do not wait for this reader. Its note still has the
// greatest sequence that it may have shown.
func (w *Watched) leave(ctx context.Context) {
	a := w.agreement
	a.turn <- struct{}{} // for good: no other step follows
	a.until.Store(0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := a.post(ctx, note{ready: math.MaxUint64, shown: a.last.shown}); err != nil {
		slog.Warn("cannot sign off from the other readers; their next head is late", "error", err)
	}
}
