package tip_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readers are several processes that watch one tip and agree on what they show. Everything
// runs in one goroutine, and time is the test's: while one reader waits for the board,
// others may take any number of steps.
type readers struct {
	*rand.Rand
	t       *testing.T
	store   kv.Store
	writer  *tip.Tip
	settled chain.Ref
	now     time.Time
	posts   map[string][]byte
	all     []*watching
	depth   int // of steps during other steps

	orders    map[chain.Ref]int // of each head that the writer had, by the latest time it had it
	moves     int
	seen      int // the latest of these heads that the client has seen
	seenBy    chain.Ref
	answers   int
	refused   int
	backwards int // answers that would be wrong without an agreement
}

// watching is one reader.
type watching struct {
	*tip.Watched
	busy  bool // in a step
	alive bool
	pause int // turns that it sleeps
}

// Post implements kv.Board.
func (r *readers) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	r.others()
	if r.IntN(40) == 0 {
		return errors.New("not written")
	}
	r.posts[name] = slices.Clone(value)
	if r.IntN(40) == 0 {
		return errors.New("written, but the answer was lost")
	}
	r.others()
	return nil
}

// Posts implements kv.Board.
func (r *readers) Posts(context.Context) (map[string][]byte, error) {
	r.others()
	posts := maps.Clone(r.posts)
	r.others()
	return posts, nil
}

// others lets other readers and the client go on.
func (r *readers) others() {
	r.now = r.now.Add(time.Duration(r.IntN(10)) * time.Millisecond)
	if r.depth > 3 {
		return
	}
	r.depth++
	for range r.IntN(3) {
		r.turn()
	}
	r.depth--
}

// turn does something at random.
func (r *readers) turn() {
	if len(r.all) == 0 {
		return
	}
	switch w := r.all[r.IntN(len(r.all))]; r.IntN(12) {
	case 0:
		r.now = r.now.Add(time.Duration(r.IntN(300)) * time.Millisecond)
	case 1:
		r.move()
	case 2, 3, 4, 5:
		r.step(w)
	case 6:
		if r.IntN(20) == 0 {
			w.pause = r.IntN(30)
		}
	case 7:
		if r.IntN(60) == 0 && len(r.all) < 6 {
			r.add()
		}
	case 8:
		if living := r.living(); r.IntN(60) == 0 && living > 2 {
			w.alive = false
		}
	default:
		r.ask(w)
	}
}

func (r *readers) living() (n int) {
	for _, w := range r.all {
		if w.alive {
			n++
		}
	}
	return n
}

// ready reports whether a reader can do something now, rather than sleep or wait.
func (w *watching) ready() bool {
	if w.pause > 0 {
		w.pause--
		return false
	}
	return w.alive && !w.busy
}

// step has a reader look for changes, as it does by itself from time to time.
func (r *readers) step(w *watching) {
	if w.ready() {
		w.busy = true
		_ = w.Step(r.t.Context())
		w.busy = false
	}
}

// add starts a reader.
func (r *readers) add() {
	watched, err := tip.Watch(r.t.Context(), r.store, allTables(), func(context.Context) (chain.Ref, error) { return r.settled, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	w := &watching{Watched: watched, busy: true, alive: true}
	if err := watched.JoinBy(r.t.Context(), r, func() time.Time { return r.now }); err != nil {
		return // as a process that ends
	}
	w.busy = false
	r.all = append(r.all, w)
}

// move changes the head: to a child of a block that is not settled.
func (r *readers) move() {
	if r.depth > 1 {
		return // a change of the tip is not part of a reader's step
	}
	ctx := r.t.Context()
	head := r.writer.Forkchoice().Head.Ref()
	r.moves++
	next := chain.Ref{Number: head.Number + 1}
	parent := head
	if head.Number > r.settled.Number+1 && r.IntN(3) == 0 { // a reorganization
		next.Number--
		parent, _ = r.writer.Forkchoice().Head.At(head.Number - 1)
	}
	next.Hash[0], next.Hash[1], next.Hash[2] = byte(r.moves), byte(r.moves>>8), 1
	grow(r.t, r.writer, next, parent)
	setHead(r.t, r.writer, next)
	if next.Number > r.settled.Number+4 {
		settled, _ := r.writer.Forkchoice().Head.At(r.settled.Number + 1)
		r.settled = settled
		if err := r.writer.Settled(ctx, settled); err != nil {
			r.t.Fatal(err)
		}
	}
	r.orders[next] = r.moves
}

// ask has a client that has seen all answers so far ask a reader for its head.
func (r *readers) ask(w *watching) {
	if !w.ready() {
		return
	}
	seen, by := r.seen, r.seenBy
	stale := r.orders[w.Forkchoice().Head.Ref()] < seen
	w.busy = true
	sound, err := w.Try(r.t.Context())
	w.busy = false
	if err != nil || !sound {
		r.refused++
		return
	}
	r.answers++
	if stale {
		r.backwards++
	}
	head := w.Forkchoice().Head.Ref()
	if order := r.orders[head]; order < seen {
		r.t.Fatalf("answer %d: head %s (move %d) after head %s (move %d)", r.answers, head, order, by, seen)
	} else if order > r.seen {
		r.seen, r.seenBy = order, head
	}
}

// TestAgreement has a client ask several readers in any order. It never sees a head after a
// later one, while readers are slow, pause, end and start.
func TestAgreement(t *testing.T) {
	raced.Skip(t)
	var answers, refused, backwards, moves int
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			store := openStore(t, vfs.NewMem())
			defer store.Close()
			r := &readers{Rand: rand.New(rand.NewPCG(seed, 11)), t: t, store: store, settled: ref(10, 'a'), now: time.Unix(1, 0), posts: map[string][]byte{}, orders: map[chain.Ref]int{}}
			r.writer = openTip(t, store, r.settled)
			r.move()
			for len(r.all) < 3 {
				if r.add(); len(r.all) == 0 {
					continue
				}
			}
			for range 2000 {
				r.turn()
			}
			answers, refused, backwards, moves = answers+r.answers, refused+r.refused, backwards+r.backwards, moves+r.moves
		})
	}
	t.Logf("%d moves of the head, %d answers, %d requests that would have waited; %d answers would have been of an earlier head", moves, answers, refused, backwards)
	if backwards == 0 || answers < moves/2 {
		t.Error("the test shows nothing")
	}
}

// TestAgreementSteps counts what a new head takes: all readers look once, the last of them
// shows it, and the others when they look again. Run looks at once then.
func TestAgreementSteps(t *testing.T) {
	store, writer, settled := withHead(t)
	b := &board{posts: map[string][]byte{}}
	var all []*tip.Watched
	for range 3 {
		w, err := tip.Watch(t.Context(), store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
		if err == nil {
			err = w.JoinBy(t.Context(), b, time.Now)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	step := func() {
		for _, w := range all {
			if err := w.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(what string, want ...uint64) {
		t.Helper()
		for i, w := range all {
			if got := w.Forkchoice().Head.Ref().Number; got != want[i] {
				t.Errorf("%s: reader %d shows %d, expected %d", what, i, got, want[i])
			}
		}
	}
	step()
	step()
	step()
	grow(t, writer, ref(12, 'a'), ref(11, 'a'))
	setHead(t, writer, ref(12, 'a'))
	expect("before all have looked", 11, 11, 11)
	b.count = 0
	step()
	expect("when all have looked once", 11, 11, 12)
	step()
	expect("when they have looked again", 12, 12, 12)
	if want := 4*len(all) - 1; b.count != want {
		t.Errorf("%d statements of the board, expected %d: each reader notes twice and reads twice, and the last one once", b.count, want)
	}
	for i, w := range all {
		b.count = 0
		if err := w.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.count != 0 {
			t.Errorf("an answer of reader %d takes %d statements, expected none while the head stands", i, b.count)
		}
	}
}

// board is a kv.Board in memory that counts statements.
type board struct {
	mu    sync.Mutex
	posts map[string][]byte
	count int
}

func (b *board) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	b.posts[name] = slices.Clone(value)
	return nil
}

func (b *board) Posts(context.Context) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	return maps.Clone(b.posts), nil
}
