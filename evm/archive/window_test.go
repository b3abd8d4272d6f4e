package archive_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/archive/join"
	"ashlar/evm/archive/window"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"golang.org/x/sync/errgroup"
)

// smallWindow is the window of these tests, and exact moves it with each block.
var (
	smallWindow = window.Window{State: 40, History: 60}
	exact       = window.Options{Ancestors: 1}
)

// openArchive opens the archive in a store.
func openArchive(t *testing.T, store kv.Store) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustMove(t *testing.T, a *archive.Archive, store kv.Store, w window.Window, o window.Options) {
	t.Helper()
	if err := window.New(a, store, w, o).Move(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// of returns the rows of tables, with the bytes of their keys and values.
func of(rows map[string]string, tables ...*kv.Table) (count, size int) {
	for key, value := range rows {
		for _, table := range tables {
			if strings.HasPrefix(key, table.Name+", ") {
				count, size = count+1, size+len(value)+40
			}
		}
	}
	return count, size
}

// TestWindowTurnover: after many turnovers an archive has as many rows as a new one of its
// window, of nearly the same size, and the states of its blocks are right.
func TestWindowTurnover(t *testing.T) {
	raced.Skip(t)
	const last = 420
	chain := archive.GrowChain(t, 1300, last)
	for name, piecewise := range map[string]bool{"at once": false, "piecewise": true} {
		for _, work := range []time.Duration{0, 1} { // 1: each slice of a table is one partition
			t.Run(fmt.Sprint(name, " ", work), func(t *testing.T) {
				store := chain.Between(t, 0, 0)
				if piecewise {
					store = &kvtest.Piecewise{Store: store}
				}
				a := openArchive(t, store)
				options := exact
				options.Steps, options.Work = 10, work
				for block := uint64(7); block < last; block += 7 {
					chain.Append(t, a, block)
					mustMove(t, a, store, smallWindow, options)
				}
				chain.Append(t, a, last)
				mustMove(t, a, store, smallWindow, exact)
				if got, want := a.Extent(), (archive.Extent{Blocks: last - 59, State: last - 39}); got != want {
					t.Fatalf("it begins with %+v, want %+v", got, want)
				}
				chain.CheckStates(t, a)
				tables := archive.NamedTables()
				got := rowsOf(t, store)
				fresh := rowsOf(t, chain.Between(t, last-39, last))
				states := []*kv.Table{tables.Accounts, tables.Slots, tables.TrieNodes}
				count, size := of(got, states...)
				wantCount, wantSize := of(fresh, states...)
				t.Logf("%d rows of %d bytes, a new archive has %d of %d", count, size, wantCount, wantSize)
				if !piecewise && (count != wantCount || size > wantSize*115/100) {
					t.Errorf("%d rows of %d bytes, want %d and at most 15%% more than %d", count, size, wantCount, wantSize)
				}
				if piecewise && (count < wantCount || count > wantCount*2) {
					t.Errorf("%d rows, want %d and those that differences need", count, wantCount)
				}
				checkBlockRows(t, chain, store, last)
			})
		}
	}
}

// checkBlockRows compares the rows of blocks with those of a whole archive from the first block
// on.
func checkBlockRows(t *testing.T, chain archive.Chain, store kv.Store, last uint64) {
	t.Helper()
	whole := chain.Between(t, 0, last)
	tables := archive.NamedTables()
	for _, table := range append(tables.Own(), tables.Derived()...) {
		want, got := make(map[string]string), make(map[string]string)
		for to, from := range map[*map[string]string]kv.Store{&want: whole, &got: store} {
			for row, err := range from.Walk(t.Context(), table, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if block := table.BlockOf(row.Sort); from == store || block == 0 || block > last-60 {
					(*to)[fmt.Sprintf("%x %d", row.Partition, row.Sort)] = string(row.Value)
				}
			}
		}
		if !maps.Equal(want, got) {
			t.Errorf("%s: %d rows, want %d, or others", table.Name, len(got), len(want))
		}
	}
}

// TestWindowKilled kills the removal at each of its writes. The states of the window are right
// then, and the next run completes it.
func TestWindowKilled(t *testing.T) {
	raced.Skip(t)
	const last = 120
	chain := archive.GrowChain(t, 1310, last)
	want := chain.Between(t, 0, last)
	mustMove(t, openArchive(t, want), want, smallWindow, exact)
	for _, piecewise := range []bool{false, true} {
		kills := 0
		for killed := true; killed; kills++ {
			disk := chain.Between(t, 0, last)
			var store kv.Store = &cut{disk, kills}
			options := exact
			options.Work = 1
			if piecewise {
				store = &kvtest.Piecewise{Store: store}
			}
			err := window.New(openArchive(t, store), store, smallWindow, options).Move(t.Context())
			if killed = errors.Is(err, errCut); !killed && err != nil {
				t.Fatal(err)
			}
			a := openArchive(t, disk)
			if kills%62 == 0 {
				chain.CheckStates(t, a)
			}
			mustMove(t, a, disk, smallWindow, exact)
			if removed, _, err := a.Removed(t.Context()); err != nil || removed != a.Extent() {
				t.Fatalf("killed at write %d: removed up to %+v, want %+v, %v", kills, removed, a.Extent(), err)
			}
			if !piecewise || killed && kills < 3 {
				checkSameRows(t, rowsOf(t, want), rowsOf(t, disk))
			}
			if kills > 10 {
				kills += 30
			}
		}
		if kills < 20 {
			t.Errorf("the removal has only %d writes", kills)
		}
	}
}

// walked checks where walks begin that continue others.
type walked struct {
	kv.Store
	t     *testing.T
	again int
	last  string
}

func (w *walked) WalkAfter(ctx context.Context, table *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	if after != nil {
		w.again++
		if place := fmt.Sprintf("%s %x", table.Name, after); place == w.last {
			w.t.Errorf("two walks begin after %s: the second reads past what was removed", place)
		} else {
			w.last = place
		}
		if _, _, err := w.Newest(ctx, table, after, ^uint64(0), nil); err != nil {
			w.t.Errorf("a walk of %s begins after partition %x: %v", table.Name, after, err)
		}
	}
	return w.Store.WalkAfter(ctx, table, after, from)
}

// TestWindowWalks: a removal in slices never walks twice over the same partitions, also where
// it has removed all of their rows.
func TestWindowWalks(t *testing.T) {
	const last = 200
	chain := archive.GrowChain(t, 1330, last)
	for _, piecewise := range []bool{false, true} {
		var store kv.Store = &walked{Store: chain.Between(t, 0, last), t: t}
		counted := store.(*walked)
		if piecewise {
			store = &kvtest.Piecewise{Store: store}
		}
		options := exact
		options.Work = 1 // each slice is one partition
		mustMove(t, openArchive(t, store), store, smallWindow, options)
		if counted.again < 100 {
			t.Errorf("the removal had %d slices, want 100 or more", counted.again)
		}
	}
}

// weighed is a store that weighs what is written to it.
type weighed struct {
	kv.Store
	most int // bytes of a batch
}

func (w *weighed) Write(ctx context.Context, b kv.Batch) error {
	w.most = max(w.most, b.Bytes())
	return w.Store.Write(ctx, b)
}

// TestWindowBatches: a removal is written in small batches, also where each partition loses all
// of its rows.
func TestWindowBatches(t *testing.T) {
	const last, emptied, most = 100, 2000, 20 << 10
	disk := archive.GrowChain(t, 1340, last).Between(t, 0, last)
	b := disk.NewBatch()
	for i := range uint64(emptied) {
		b.Put(archive.NamedTables().TracePostings, binary.BigEndian.AppendUint64(make([]byte, 12), i), 1, []byte("row"))
	}
	if err := disk.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	measured := &weighed{Store: disk}
	store := &kvtest.Piecewise{Store: measured}
	mustMove(t, openArchive(t, store), store, smallWindow, exact)
	if measured.most > most {
		t.Errorf("a batch of %d bytes, want %d at most", measured.most, most)
	}
	for row, err := range disk.Walk(t.Context(), archive.NamedTables().TracePostings, 0) {
		t.Fatalf("a row of %x at %d is left, %v", row.Partition, row.Sort, err)
	}
}

// TestWindowReaders: whoever reads while the window moves gets the right state, or is told
// that it is pruned.
func TestWindowReaders(t *testing.T) {
	const last = 160
	chain := archive.GrowChain(t, 1320, last)
	store := chain.Between(t, 0, 50)
	a := openArchive(t, store)
	done := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	for reader := range 3 {
		random := rand.New(rand.NewPCG(uint64(reader), 1))
		group.Go(func() error { return readUntil(ctx, done, chain, a, random) })
	}
	for block := uint64(51); block <= last; block++ {
		chain.Append(t, a, block)
		mustMove(t, a, store, smallWindow, exact)
	}
	close(done)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func readUntil(ctx context.Context, done <-chan struct{}, chain archive.Chain, a *archive.Archive, random *rand.Rand) error {
	for reads, pruned := 0, 0; ; reads++ {
		select {
		case <-done:
			if pruned == 0 || pruned == reads {
				return fmt.Errorf("%d of %d reads were pruned", pruned, reads)
			}
			return nil
		default:
		}
		settled, _ := a.Settled()
		first := a.Extent().State
		number := max(first, 3) - 3 + random.Uint64N(settled.Number-first+4)
		number = min(number, settled.Number)
		err := chain.CheckRead(ctx, a, number, random)
		if refused := (*archive.Pruned)(nil); errors.As(err, &refused) && refused.First > number && refused.State {
			pruned++
		} else if err != nil {
			return err
		}
	}
}

// TestWindowIsRewound: a rewind below the window is refused, one within it goes on as ever.
func TestWindowIsRewound(t *testing.T) {
	chain := archive.GrowChain(t, 1330, 140)
	store := chain.Between(t, 0, 120)
	mustMove(t, openArchive(t, store), store, smallWindow, exact)
	var pruned *archive.Pruned
	if _, err := archive.Rewind(t.Context(), store, 80, nil); !errors.As(err, &pruned) || pruned.First != 81 {
		t.Errorf("rewind below the window: %v", err)
	}
	for _, to := range []uint64{110, 82} {
		if _, err := archive.Rewind(t.Context(), store, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	a := openArchive(t, store)
	mustMove(t, a, store, smallWindow, exact)
	if a.Extent().State != 81 {
		t.Errorf("it begins with %+v", a.Extent())
	}
	chain.Append(t, a, 140)
	chain.CheckStates(t, a)
	mustMove(t, a, store, smallWindow, exact)
	chain.CheckStates(t, a)
}

// TestWiderWindow: a wider window keeps what is there, and grows with the blocks to come.
func TestWiderWindow(t *testing.T) {
	chain := archive.GrowChain(t, 1340, 200)
	store := chain.Between(t, 0, 120)
	a := openArchive(t, store)
	mustMove(t, a, store, smallWindow, exact)
	wider := window.Window{State: 70}
	for _, test := range []struct{ block, state uint64 }{{120, 81}, {140, 81}, {150, 81}, {160, 91}, {200, 131}} {
		chain.Append(t, a, test.block)
		mustMove(t, a, store, wider, exact)
		if got := a.Extent(); got != (archive.Extent{Blocks: 61, State: test.state}) {
			t.Errorf("at block %d it begins with %+v, want the state of %d", test.block, got, test.state)
		}
	}
	chain.CheckStates(t, a)
}

func TestWindowCheck(t *testing.T) {
	for w, ok := range map[window.Window]bool{
		{}: true, {State: 5}: true, {State: 5, History: 5}: true, {State: 5, History: 4}: false, {History: 4}: false,
	} {
		if err := w.Check(); (err == nil) != ok {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// TestWindowIsJoined: an archive with a window can be added to one of the blocks before it, not
// the other way round.
func TestWindowIsJoined(t *testing.T) {
	chain := archive.GrowChain(t, 1350, 120)
	upper := chain.Between(t, 0, 120)
	mustMove(t, openArchive(t, upper), upper, window.Window{State: 40}, exact)
	lower := chain.Between(t, 0, 81)
	if _, err := join.Run(t.Context(), upper, lower, join.Options{}); !errors.Is(err, join.ErrFit) || !contains(err, "older history was removed") {
		t.Errorf("joined from below: %v", err)
	}
	mustJoin(t, lower, upper)
	checkSameRows(t, rowsOf(t, chain.Between(t, 0, 120)), rowsOf(t, lower))
}
