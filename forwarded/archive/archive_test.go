package archive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// created returns a store in memory that was prepared by Create.
func created(t *testing.T) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "answers", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := Create(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return store
}

// The size of the archive is bounded, however often the server is started again.
func TestSizeAfterRestarts(t *testing.T) {
	store := created(t)
	const size, starts, answerBytes = 1 << 20, 200, 10_000
	for start := range starts {
		a, err := Open(t.Context(), store, size, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Put(t.Context(), fmt.Sprint(start), make([]byte, answerBytes)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(t.Context(), store, size, false)
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for start := range starts {
		answer, ok, err := a.Get(t.Context(), fmt.Sprint(start))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			stored += len(answer)
		}
	}
	if most := size * (generations + 1) / generations; stored > most {
		t.Errorf("%d bytes are stored, expected at most %d", stored, most)
	}
}

// The size of the archive is bounded, too, if writes fail although they are applied.
func TestSizeAfterDoubtfulWrites(t *testing.T) {
	store := kvtest.NewDoubtful(created(t))
	store.How = kvtest.Applied
	const size, answerBytes, count = 1 << 20, 10_000, 400
	a, err := Open(t.Context(), store, size, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		store.Fail = i % 2 // every other write
		if err := a.Put(t.Context(), fmt.Sprint(i), make([]byte, answerBytes)); err != nil && !errors.Is(err, kvtest.ErrDoubtful) {
			t.Fatal(err)
		}
	}
	stored := 0
	for number := range uint32(count) {
		rows := store.Scan(t.Context(), answers, partition(number), 0, math.MaxUint64)
		for rows.Next() {
			stored += len(rows.Value())
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if least, most := size/2, size*(generations+1)/generations; stored < least || stored > most {
		t.Errorf("%d bytes are stored, expected from %d to %d", stored, least, most)
	}
}

// full is a store that refuses writes while there is no space.
type full struct {
	kv.Store
	noSpace bool
}

func (f *full) Write(ctx context.Context, batch kv.Batch) error {
	if f.noSpace {
		return kv.ErrFull
	}
	return f.Store.Write(ctx, batch)
}

// Answers that a full disk refuses take the place of none, however often they are asked for.
func TestFullDiskLosesNothing(t *testing.T) {
	store := &full{Store: created(t)}
	a, err := Open(t.Context(), store, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	const count = 100
	have := func() (n int) {
		for i := range count {
			_, ok, err := a.Get(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				n++
			}
		}
		return n
	}
	put := func(question string) error { return a.Put(t.Context(), question, make([]byte, 10_000)) }
	for i := range count {
		if err := put(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for episode := range 5 {
		store.noSpace = true
		for i := range 2 * count {
			if err := put(fmt.Sprintf("refused %d", i%10)); !errors.Is(err, kv.ErrFull) {
				t.Fatalf("episode %d: %v, expected %v", episode, err, kv.ErrFull)
			}
		}
		if got := have(); got != count {
			t.Fatalf("episode %d: %d answers are left, expected %d", episode, got, count)
		}
		store.noSpace = false
		if err := put(fmt.Sprintf("between, %d", episode)); err != nil {
			t.Fatal(err)
		}
	}
}

// killed is a store whose process ends at the first Drop of a generation: nothing that it does
// afterwards is done.
type killed struct {
	kv.Store
	dead bool
}

var errKilled = errors.New("killed")

func (k *killed) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	k.dead = true
	return errKilled
}

func (k *killed) Write(ctx context.Context, batch kv.Batch) error {
	if k.dead {
		return errKilled
	}
	return k.Store.Write(ctx, batch)
}

// The rows of a generation are dropped although the process was killed when it came to that.
func TestDropAfterKill(t *testing.T) {
	store := created(t)
	const size, answerBytes = 1 << 20, 10_000
	fill := func(store kv.Store, from int) (next int) {
		t.Helper()
		a, err := Open(t.Context(), store, size, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < from+1000; i++ {
			if err := a.Put(t.Context(), fmt.Sprint(i), make([]byte, answerBytes)); errors.Is(err, errKilled) {
				return i
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return from + 1000
	}
	died := fill(&killed{Store: store}, 0)
	if died == 1000 {
		t.Fatal("nothing was dropped")
	}
	fill(store, died)
	for number := range uint32(4) {
		rows := store.Scan(t.Context(), answers, partition(number), 0, math.MaxUint64)
		if rows.Next() {
			t.Errorf("generation %d still has rows", number)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}
