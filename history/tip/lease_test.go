package tip_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowBoard is a board whose statements take time.
type slowBoard struct {
	board
	now        time.Time
	post, read time.Duration
}

func (b *slowBoard) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	b.now = b.now.Add(b.post)
	return b.board.Post(ctx, name, value, keep)
}

func (b *slowBoard) Posts(ctx context.Context) (map[string][]byte, error) {
	b.now = b.now.Add(b.read)
	return b.board.Posts(ctx)
}

// view is the board as one reader sees it.
type view struct {
	*slowBoard
	before func() // called before a note is written; may be nil
	lost   bool   // the answers of writes are lost
}

func (v *view) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if v.before != nil {
		v.before()
	}
	err := v.slowBoard.Post(ctx, name, value, keep)
	if v.lost {
		return errors.New("written, but the answer was lost")
	}
	return err
}

// join starts a reader.
func (v *view) join(t *testing.T, store kv.Store, settled chain.Ref) *tip.Watched {
	t.Helper()
	w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
	if err == nil {
		err = w.JoinBy(t.Context(), v, func() time.Time { return v.now })
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// steps has readers take a step, one after the other.
func steps(t *testing.T, readers ...*tip.Watched) {
	t.Helper()
	for _, w := range readers {
		if err := w.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLease: a reader answers without the board for two seconds from when it began to write its last note, however long the
// board takes. Others count the three seconds after which it is not living from a later moment.
func TestLease(t *testing.T) {
	store, _, settled := withHead(t)
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	w := (&view{slowBoard: b}).join(t, store, settled)
	steps(t, w, w, w)
	b.now = b.now.Add(time.Second) // another note is due
	began := b.now
	b.post, b.read = 400*time.Millisecond, 1200*time.Millisecond
	steps(t, w)
	b.post, b.read = 0, 0
	for _, c := range []struct {
		after time.Duration
		asks  bool // the reader needs the board
	}{{1999 * time.Millisecond, false}, {2000 * time.Millisecond, true}} {
		b.now, b.count = began.Add(c.after), 0
		sound, err := w.Try(t.Context())
		if err != nil || !sound || b.count > 0 != c.asks {
			t.Errorf("%v after the note: answers %v after %d statements, %v; asks the board: expected %v", c.after, sound, b.count, err, c.asks)
		}
	}
}

// TestSlowBoard: a reader does not answer if the board took longer than its lease.
func TestSlowBoard(t *testing.T) {
	store, _, settled := withHead(t)
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	w := (&view{slowBoard: b}).join(t, store, settled)
	steps(t, w, w, w)
	for read, want := range map[time.Duration]bool{1999 * time.Millisecond: true, 2000 * time.Millisecond: false} {
		b.now, b.read = b.now.Add(time.Minute), read
		if sound, err := w.Try(t.Context()); sound != want || err != nil {
			t.Errorf("the board takes %v: the reader answers: %t, %v, expected %t", read, sound, err, want)
		}
	}
}

// TestLeave: the last note of a reader says what it has shown. Another one that was not living meanwhile, and is ready for an
// earlier tree, does not answer by that.
func TestLeave(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	head := func(number uint64) {
		grow(t, writer, ref(number, 'a'), ref(number-1, 'a'))
		setHead(t, writer, ref(number, 'a'))
	}
	head(11)
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	late, leaves := (&view{slowBoard: b}).join(t, store, settled), (&view{slowBoard: b}).join(t, store, settled)
	steps(t, late, leaves, late, leaves, late, leaves)
	head(12)
	steps(t, late) // it is ready for 12
	head(13)
	steps(t, leaves)
	b.now = b.now.Add(4 * time.Second)
	steps(t, leaves) // the late one is not living
	if got := leaves.Forkchoice().Head.Ref().Number; got != 13 {
		t.Fatalf("the reader that leaves shows %d, expected 13", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := leaves.Run(ended, time.Hour, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	answersBy(t, late, 13)
	head(14)
	steps(t, late)
	if got := late.Forkchoice().Head.Ref().Number; got != 14 {
		t.Errorf("the other reader shows %d, expected 14: it waits for the one that has left", got)
	}
}

// answersBy waits until a reader answers, by a head that clients have seen.
func answersBy(t *testing.T, w *tip.Watched, head uint64) {
	t.Helper()
	for tries := 0; ; tries++ {
		sound, err := w.Try(t.Context())
		got := w.Forkchoice().Head.Ref().Number
		switch {
		case err != nil || tries == 10:
			t.Fatalf("head %d after %d tries: %v", got, tries, err)
		case !sound:
			continue
		case got != head:
			t.Errorf("the reader answers by head %d, expected %d, which clients have seen", got, head)
		}
		return
	}
}

// TestLostAnswer: a note differs from the one before, also if that was written and the answer was lost. Otherwise others would
// not notice it, and take its reader for dead.
func TestLostAnswer(t *testing.T) {
	store, _, settled := withHead(t)
	v := &view{slowBoard: &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}}
	w := v.join(t, store, settled)
	steps(t, w, w, w)
	v.now = v.now.Add(time.Second) // another note is due
	v.lost = true
	if err := w.Step(t.Context()); err == nil {
		t.Fatal("a step whose note may not be written succeeds")
	}
	lost := maps.Clone(v.posts)
	v.lost = false
	steps(t, w)
	if maps.EqualFunc(v.posts, lost, bytes.Equal) {
		t.Error("the note after one whose answer was lost is the same")
	}
}

// TestLapsed: a reader that others take for dead reads the tip, and then writes a note. In between, another one has found that
// all that live are ready for a later head, which it shows after the first one has read the board. So the first one has no
// lease before it has read the tip once more.
func TestLapsed(t *testing.T) {
	store, writer, settled := withHead(t)
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	sees, showing := &view{slowBoard: b}, &view{slowBoard: b}
	late, other := sees.join(t, store, settled), showing.join(t, store, settled)
	steps(t, late, other, late, other, late, other)
	b.now = b.now.Add(time.Second)
	steps(t, other) // reads the last note of the late one
	b.now = b.now.Add(4 * time.Second)
	steps(t, other) // the late one is not living

	arrived, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	notes := 0
	showing.before = func() {
		if notes++; notes == 2 { // that it shows 12
			close(arrived)
			<-resume
		}
	}
	sees.before = func() {
		sees.before = nil
		grow(t, writer, ref(12, 'a'), ref(11, 'a'))
		setHead(t, writer, ref(12, 'a'))
		go func() { done <- other.Step(t.Context()) }()
		select {
		case <-arrived:
		case err := <-done:
			t.Fatalf("the other reader does not show a head: %v", err)
		}
	}
	steps(t, late)
	close(resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := other.Forkchoice().Head.Ref().Number; got != 12 {
		t.Fatalf("the other reader shows %d, expected 12", got)
	}
	answersBy(t, late, 12)
	steps(t, late)
	b.count = 0
	if answersBy(t, late, 12); b.count > 0 {
		t.Errorf("after the reader has read the tip, an answer takes %d statements, expected none", b.count)
	}
}
