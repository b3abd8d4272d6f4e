package tip_test

import (
	"context"
	"log/slog"
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

// join starts a reader that uses the board and its clock.
func (b *slowBoard) join(t *testing.T, store kv.Store, settled chain.Ref) *tip.Watched {
	t.Helper()
	w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
	if err == nil {
		err = w.JoinBy(t.Context(), b, func() time.Time { return b.now })
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
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	settled := ref(10, 'a')
	writer := openTip(t, store, settled)
	grow(t, writer, ref(11, 'a'), settled)
	setHead(t, writer, ref(11, 'a'))
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	w := b.join(t, store, settled)
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
	late, leaves := b.join(t, store, settled), b.join(t, store, settled)
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
	for tries := 0; ; tries++ {
		sound, err := late.Try(t.Context())
		got := late.Forkchoice().Head.Ref().Number
		switch {
		case err != nil || tries == 10:
			t.Fatalf("head %d after %d tries: %v", got, tries, err)
		case !sound:
			continue
		case got != 13:
			t.Errorf("the late reader answers by head %d, expected 13, which clients have seen", got)
		}
		return
	}
}
