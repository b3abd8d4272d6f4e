package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// noteOf returns the note of a reader.
func noteOf(ready, shown, count uint64) (value []byte) {
	for _, number := range []uint64{ready, shown, count} {
		value = binary.BigEndian.AppendUint64(value, number)
	}
	return value
}

// brokenBoard is a board that cannot be read from some time on.
type brokenBoard struct {
	board
	broken atomic.Bool
}

func (b *brokenBoard) Posts(ctx context.Context) (map[string][]byte, error) {
	if b.broken.Load() {
		return nil, kvtest.ErrBroken
	}
	return b.board.Posts(ctx)
}

// TestCurrentWaits: while another reader has shown a later head, a request waits until that head is here, or for five seconds.
// If the board fails, it does not wait.
func TestCurrentWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrives time.Duration // when the head is stored that the other reader shows; 0: never
		broken  time.Duration // when the board fails
		ended   time.Duration // when the client goes away
		after   time.Duration
		want    error
	}{
		{name: "until it arrives", arrives: time.Second, after: time.Second},
		{name: "for five seconds", after: 5 * time.Second, want: kv.ErrUnavailable},
		{name: "until the board fails", broken: time.Second, after: time.Second, want: kvtest.ErrBroken},
		{name: "until the client is gone", ended: time.Second, after: time.Second, want: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, writer, settled := withHead(t)
				grow(t, writer, ref(12, 'a'), ref(11, 'a'))
				b := &brokenBoard{board: board{posts: map[string][]byte{}}}
				w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
				if err == nil {
					err = w.JoinBy(t.Context(), b, time.Now)
				}
				if err != nil {
					t.Fatal(err)
				}
				steps(t, w, w, w)
				pointer, err := store.Pointer(t.Context(), "tip")
				if err != nil {
					t.Fatal(err)
				}
				later := binary.BigEndian.Uint64(pointer[len(pointer)-8:]) + 1
				b.posts["other"], b.posts["slow"] = noteOf(later, later, 1), noteOf(0, 0, 1) // the slow one is not waited for
				time.Sleep(2 * time.Second)                                                  // the lease ends
				begun, done := time.Now(), make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { done <- w.Current(ctx) }()
				for what, at := range map[string]time.Duration{"arrives": c.arrives, "broken": c.broken, "ended": c.ended} {
					if at == 0 {
						continue
					}
					time.Sleep(at)
					switch what {
					case "arrives":
						setHead(t, writer, ref(12, 'a'))
					case "broken":
						b.broken.Store(true)
					case "ended":
						cancel()
					}
				}
				err = <-done
				if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) {
					t.Errorf("%v, expected %v", err, c.want)
				}
				if took := time.Since(begun); took < c.after || took > c.after+100*time.Millisecond {
					t.Errorf("the request waits for %v, expected %v", took, c.after)
				}
				if head := w.Forkchoice().Head.Ref().Number; err == nil && head != 12 {
					t.Errorf("the request is answered by head %d, expected 12", head)
				}
			})
		})
	}
}

// postsStore is a store with a board of which only Posts is used.
type postsStore struct {
	kv.Store
	posts func() (map[string][]byte, error)
}

func (s *postsStore) Post(context.Context, string, []byte, time.Duration) error { return nil }
func (s *postsStore) Posts(context.Context) (map[string][]byte, error)          { return s.posts() }

// TestAwaitReadersFails: rows must not be removed if it is not known that the readers have ended.
func TestAwaitReadersFails(t *testing.T) {
	reader := map[string][]byte{"reader": noteOf(1, 1, 1)}
	for _, c := range []struct {
		name string
		err  error // of the second look; nil: the reader's note stays
		want error
	}{
		{"the wait is canceled", nil, context.DeadlineExceeded},
		{"the wait is canceled while the store is unavailable", kv.ErrUnavailable, context.DeadlineExceeded},
		{"the board fails", kvtest.ErrBroken, kvtest.ErrBroken},
		{"there is no board", errors.ErrUnsupported, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				looks := 0
				err := tip.AwaitReaders(ctx, &postsStore{posts: func() (map[string][]byte, error) {
					if looks++; looks == 1 || c.err == nil {
						return reader, nil
					}
					return nil, c.err
				}})
				if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) {
					t.Errorf("%v, expected %v", err, c.want)
				}
			})
		})
	}
}

// brokenOnce is a store of which the next pointer cannot be read once it is broken.
type brokenOnce struct {
	kv.Store
	broken atomic.Bool
}

func (b *brokenOnce) Pointer(ctx context.Context, name string) ([]byte, error) {
	if b.broken.CompareAndSwap(true, false) {
		return nil, kvtest.ErrBroken
	}
	return b.Store.Pointer(ctx, name)
}

// TestRun: a reader looks for changes every so often, goes on after failures, and ends when the store must be opened again.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := openStore(t, vfs.NewMem())
		defer below.Close()
		settled := ref(10, 'a')
		writer := openTip(t, below, settled)
		grow(t, writer, ref(11, 'a'), settled)
		store := &brokenOnce{Store: below}
		w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context(), time.Second, slog.New(slog.DiscardHandler)) }()
		expect := func(when string, want chain.Ref) {
			t.Helper()
			synctest.Wait()
			if got := w.Forkchoice().Head.Ref(); got != want {
				t.Errorf("%s: head %s, expected %s", when, got, want)
			}
		}
		setHead(t, writer, ref(11, 'a'))
		expect("before a second is over", settled)
		store.broken.Store(true) // the first look fails
		time.Sleep(time.Second)
		expect("after a look that fails", settled)
		time.Sleep(time.Second)
		expect("after another look", ref(11, 'a'))
		setEpoch(t, below, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, tip.ErrRemoved) {
				t.Errorf("%v, expected ErrRemoved", err)
			}
		default:
			t.Fatal("the reader goes on while rows are removed")
		}
	})
}
