package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// setEpoch writes the epoch of a store: an odd one while rows are removed.
func setEpoch(t *testing.T, store kv.Store, epoch uint64) {
	t.Helper()
	b := store.NewBatch()
	b.SetPointer(kv.EpochPointer, binary.BigEndian.AppendUint64(nil, epoch))
	if err := store.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// TestWatchArchive: a store without a tip, such as one into which blocks are imported, is watched too, also after rewinds.
func TestWatchArchive(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	setEpoch(t, store, 2)
	settled, failed := ref(10, 'a'), error(nil)
	w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, failed })
	if err != nil {
		t.Fatal(err)
	}
	settled = ref(11, 'a')
	failed = kvtest.ErrBroken
	if err := w.Refresh(t.Context()); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("the settled block cannot be read: %v", err)
	}
	failed = nil
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.Forkchoice().Head.Ref(); got != settled {
		t.Errorf("head %s, expected the settled block %s", got, settled)
	}
	if err := w.Current(t.Context()); err != nil {
		t.Errorf("without other readers, a request waits: %v", err)
	}
}

// TestWatchWhileSettling: the writer settles blocks and drops them from the tip after the reader has read which blocks there are.
func TestWatchWhileSettling(t *testing.T) {
	store, writer, settled := withHead(t)
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	setHead(t, writer, ref(12, 'a'))
	w, err := tip.Watch(t.Context(), store, allTables(), func(ctx context.Context) (chain.Ref, error) {
		settled = ref(11, 'a')
		return settled, writer.Settled(ctx, settled)
	})
	if err != nil {
		t.Fatal(err)
	}
	if head := w.Forkchoice().Head; head.Ref() != ref(12, 'a') || head.Settled() != settled {
		t.Errorf("head %s over %s, expected 12 over 11", head.Ref(), head.Settled())
	}
}

// changing is a store whose unsettled blocks cannot be found for some reads, as they are dropped between two reads.
type changing struct {
	kv.Store
	missing int
}

func (c *changing) Scan(ctx context.Context, table *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	if c.missing--; c.missing >= 0 {
		partition = []byte("missing")
	}
	return c.Store.Scan(ctx, table, partition, from, to)
}

// TestWatchTriesAgain: a block that was dropped while a reader starts does no harm, but one that is missing for good is reported.
func TestWatchTriesAgain(t *testing.T) {
	store, _, settled := withHead(t)
	for missing, want := range map[int]error{3: nil, 1000: tip.ErrCorrupt} {
		w, err := tip.Watch(t.Context(), &changing{store, missing}, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
		if !errors.Is(err, want) {
			t.Errorf("missing in %d reads: %v, expected %v", missing, err, want)
		}
		if want == nil && w.Forkchoice().Head.Ref() != ref(11, 'a') {
			t.Errorf("head %s, expected 11", w.Forkchoice().Head.Ref())
		}
	}
}

// follower is a store that records what it is told of settled blocks.
type follower struct {
	kv.Store
	t      *testing.T
	number uint64
	rows   []uint64 // their sort keys; nil if the rows are not known
}

func (f *follower) Follow(number uint64, rows iter.Seq2[*kv.Table, kv.Row]) {
	f.number, f.rows = number, nil
	if rows == nil {
		return
	}
	for table, row := range rows {
		if table != versions || string(row.Partition) != "last" || string(row.Value) != ref(row.Sort, 'a').String() {
			f.t.Errorf("a row %s of %s with %q", row.Partition, table.Name, row.Value)
		}
		f.rows = append(f.rows, row.Sort)
	}
	for range rows { // it may end early
		break
	}
}

// TestFollow: a store that keeps rows is told which rows the blocks have that were settled since.
func TestFollow(t *testing.T) {
	below, writer, settled := withHead(t)
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	grow(t, writer, ref(13, 'a'), ref(12, 'a'))
	setHead(t, writer, ref(13, 'a'))
	store := &follower{Store: below, t: t}
	w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settled chain.Ref
		rows    []uint64
	}{{ref(12, 'a'), []uint64{11, 12}}, {ref(20, 'x'), nil}} {
		if settled = c.settled; c.rows != nil {
			if err := writer.Settled(t.Context(), settled); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if store.number != settled.Number || !slices.Equal(store.rows, c.rows) {
			t.Errorf("settled %s: the store follows to %d with the rows %d, expected %d", settled, store.number, store.rows, c.rows)
		}
	}
	store.number = 0
	if err := w.Refresh(t.Context()); err != nil || store.number != 0 {
		t.Errorf("without another settled block the store follows to %d, %v", store.number, err)
	}
}

// TestRunAgrees: readers look at once again while they wait for each other, and sign off when they end.
func TestRunAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, writer, settled := withHead(t)
		b := &board{posts: map[string][]byte{}}
		ctx, cancel := context.WithCancel(t.Context())
		var all []*tip.Watched
		done := make(chan error, 2)
		for range 2 {
			w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
			if err == nil {
				err = w.JoinBy(t.Context(), b, time.Now)
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
			go func() { done <- w.Run(ctx, time.Second, slog.New(slog.DiscardHandler)) }()
		}
		time.Sleep(5 * time.Second)
		grow(t, writer, ref(12, 'a'), ref(11, 'a'))
		setHead(t, writer, ref(12, 'a'))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		for i, w := range all {
			if got := w.Forkchoice().Head.Ref().Number; got != 12 {
				t.Errorf("reader %d shows %d, expected 12 when all have looked", i, got)
			}
		}
		if err := b.Post(t.Context(), "late", noteOf(0, 0, 1), 0); err != nil {
			t.Fatal(err)
		}
		grow(t, writer, ref(13, 'a'), ref(12, 'a'))
		setHead(t, writer, ref(13, 'a'))
		for _, c := range []struct {
			after time.Duration
			want  uint64
		}{{2 * time.Second, 12}, {3 * time.Second, 13}} { // three seconds after it was first read, the late one is not living
			time.Sleep(c.after)
			synctest.Wait()
			for i, w := range all {
				if got := w.Forkchoice().Head.Ref().Number; got != c.want {
					t.Errorf("reader %d shows %d, expected %d while one is late", i, got, c.want)
				}
			}
		}
		cancel()
		for range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		delete(b.posts, "late")
		for name, value := range b.posts {
			if ready := binary.BigEndian.Uint64(value); ready != 1<<64-1 {
				t.Errorf("reader %s has not signed off: it is ready for %d", name, ready)
			}
		}
	})
}

// TestRemovedWhileAgreed: a reader that agrees with others does not renew its note while rows are removed.
func TestRemovedWhileAgreed(t *testing.T) {
	store, _, settled := withHead(t)
	b := &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}
	w := (&view{slowBoard: b}).join(t, store, settled)
	steps(t, w, w, w)
	setEpoch(t, store, 1)
	b.now = b.now.Add(10 * time.Second)
	b.count = 0
	_, asked := w.Try(t.Context())
	for _, err := range []error{w.Step(t.Context()), asked, w.Run(t.Context(), time.Millisecond, slog.New(slog.DiscardHandler))} {
		if !errors.Is(err, tip.ErrRemoved) {
			t.Errorf("%v, expected ErrRemoved", err)
		}
	}
	if b.count > 1 { // Run signs off
		t.Errorf("%d statements of the board", b.count)
	}
}

// TestJoinWithoutTip: a reader answers although there has been no tip yet, whose trees have numbers.
func TestJoinWithoutTip(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	w := (&view{slowBoard: &slowBoard{board: board{posts: map[string][]byte{}}, now: time.Unix(1, 0)}}).join(t, store, ref(10, 'a'))
	steps(t, w)
	answersBy(t, w, 10)
}

// TestAnswersWhileOthersAreLate: a reader that waits for others to be ready for a head answers by the one before.
func TestAnswersWhileOthersAreLate(t *testing.T) {
	store, writer, settled := withHead(t)
	b := &slowBoard{board: board{posts: map[string][]byte{"of another version": {1}}}, now: time.Unix(1, 0)}
	w, late := (&view{slowBoard: b}).join(t, store, settled), (&view{slowBoard: b}).join(t, store, settled)
	steps(t, w, late, w, late, w, late)
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	setHead(t, writer, ref(12, 'a'))
	b.now = b.now.Add(time.Second)
	steps(t, w, w)
	if sound, err := w.Try(t.Context()); !sound || err != nil || w.Forkchoice().Head.Ref().Number != 11 {
		t.Errorf("sound: %t, %v, head %s, expected an answer by 11", sound, err, w.Forkchoice().Head.Ref())
	}
	steps(t, late, w)
	if got := w.Forkchoice().Head.Ref().Number; got != 12 {
		t.Errorf("head %d when both are ready, expected 12", got)
	}
}

// boardStore is a store with a board.
type boardStore struct {
	kv.Store
	board
	err error // of Post
}

func (s *boardStore) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if s.err != nil {
		return s.err
	}
	return s.board.Post(ctx, name, value, keep)
}

// TestJoin: a reader begins to answer when it has what others have shown, however long that takes. Without a board, it shows
// everything at once.
func TestJoin(t *testing.T) {
	for _, c := range []struct {
		name  string
		post  error // of the board
		later bool  // another reader has shown the head 12, which arrives after 12 seconds
		ends  time.Duration
		takes time.Duration
		want  error
	}{
		{name: "no board", post: errors.ErrUnsupported},
		{name: "alone"},
		{name: "the board fails", post: kvtest.ErrBroken, want: kvtest.ErrBroken},
		{name: "after another", later: true, takes: 12 * time.Second},
		{name: "end meanwhile", later: true, ends: 8 * time.Second, takes: 8 * time.Second, want: context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				below, writer, settled := withHead(t)
				grow(t, writer, ref(12, 'a'), ref(11, 'a'))
				store := &boardStore{Store: below, board: board{posts: map[string][]byte{}}, err: c.post}
				if c.later {
					store.posts["other"] = noteOf(2, 2, 1)
				}
				w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if c.ends > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.ends)
				}
				defer cancel()
				begun, done := time.Now(), make(chan error)
				go func() { done <- w.Join(ctx) }()
				if c.later && c.ends == 0 {
					time.Sleep(12 * time.Second)
					setHead(t, writer, ref(12, 'a'))
				}
				err = <-done
				if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) {
					t.Errorf("%v, expected %v", err, c.want)
				}
				if took := time.Since(begun); took < c.takes || took > c.takes+100*time.Millisecond {
					t.Errorf("it takes %v, expected %v", took, c.takes)
				}
				if err != nil {
					return
				}
				want := uint64(11)
				if c.later {
					want = 12
				}
				begun = time.Now()
				if err := w.Current(t.Context()); err != nil || time.Since(begun) > 0 || w.Forkchoice().Head.Ref().Number != want {
					t.Errorf("%v, after %v the head is %s, expected %d", err, time.Since(begun), w.Forkchoice().Head.Ref(), want)
				}
			})
		})
	}
}
