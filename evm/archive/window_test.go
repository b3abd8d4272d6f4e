package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/archive/join"
	"ashlar/evm/archive/window"
	"ashlar/history/retention"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"golang.org/x/sync/errgroup"
)

// smallWindow is the window of these tests, and exact moves it with each block.
var (
	smallWindow = retention.Window{Proofs: 20, State: 40, History: 60}
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

func mustMove(t *testing.T, a *archive.Archive, store kv.Store, w retention.Window, o window.Options) {
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
	for _, test := range []struct {
		name      string
		window    retention.Window
		piecewise bool
		want      archive.Extent
	}{
		{"at once", smallWindow, false, archive.Extent{Blocks: last - 59, State: last - 39, Tries: last - 19}},
		{"piecewise", smallWindow, true, archive.Extent{Blocks: last - 59, State: last - 39, Tries: last - 19}},
		{"all proofs", retention.Window{State: 40, History: 60}, false, archive.Extent{Blocks: last - 59, State: last - 39, Tries: last - 39}},
		{"all states", retention.Window{Proofs: 20}, false, archive.Extent{Tries: last - 19}},
	} {
		for _, work := range []time.Duration{0, 1} { // 1: each slice of a table is one partition
			t.Run(fmt.Sprint(test.name, " ", work), func(t *testing.T) {
				store := chain.Between(t, 0, 0)
				if test.piecewise {
					store = &kvtest.Piecewise{Store: store}
				}
				a := openArchive(t, store)
				options := exact
				options.Steps, options.Work = 10, work
				for block := uint64(7); block < last; block += 7 {
					chain.Append(t, a, block)
					mustMove(t, a, store, test.window, options)
				}
				chain.Append(t, a, last)
				mustMove(t, a, store, test.window, exact)
				if got := a.Extent(); got != test.want {
					t.Fatalf("it begins with %+v, want %+v", got, test.want)
				}
				chain.CheckStates(t, a)
				tables := archive.NamedTables()
				got := rowsOf(t, store)
				checkTurnover(t, got, rowsOf(t, chain.Between(t, test.want.State, last)), test.piecewise, tables.Accounts, tables.Slots)
				checkTurnover(t, got, rowsOf(t, chain.Between(t, test.want.Tries, last)), test.piecewise, tables.TrieNodes)
				checkBlockRows(t, chain, store, test.want.Blocks, last)
				checkTraceRows(t, chain, store, test.want.State, last)
			})
		}
	}
}

// checkTurnover compares rows of an archive with those of a new one.
func checkTurnover(t *testing.T, got, fresh map[string]string, piecewise bool, tables ...*kv.Table) {
	t.Helper()
	count, size := of(got, tables...)
	wantCount, wantSize := of(fresh, tables...)
	t.Logf("%d rows of %d bytes, a new archive has %d of %d", count, size, wantCount, wantSize)
	if !piecewise && (count != wantCount || size > wantSize*115/100) {
		t.Errorf("%d rows of %d bytes, want %d and at most 15%% more than %d", count, size, wantCount, wantSize)
	}
	if piecewise && (count < wantCount || count > wantCount*2) {
		t.Errorf("%d rows, want %d and those that differences need", count, wantCount)
	}
}

// checkBlockRows compares the rows of blocks from a first one on with those of a whole archive.
func checkBlockRows(t *testing.T, chain archive.Chain, store kv.Store, first, last uint64) {
	t.Helper()
	tables := archive.NamedTables()
	checkKept(t, chain, store, last, func(block uint64) bool { return block == 0 || block >= first }, append(tables.Own(), tables.Derived()...)...)
}

// checkTraceRows is checkBlockRows for the trace index of an archive that begins with a state.
func checkTraceRows(t *testing.T, chain archive.Chain, store kv.Store, state, last uint64) {
	t.Helper()
	tables := archive.NamedTables()
	checkKept(t, chain, store, last, func(block uint64) bool { return state == 0 || block > state }, tables.TraceCounts, tables.TracePostings, tables.TxChanges)
}

// checkKept compares the rows of tables with those that a whole archive has of the blocks that are kept.
func checkKept(t *testing.T, chain archive.Chain, store kv.Store, last uint64, kept func(block uint64) bool, tables ...*kv.Table) {
	t.Helper()
	whole := chain.Between(t, 0, last)
	for _, table := range tables {
		want, got := make(map[string]string), make(map[string]string)
		for to, from := range map[*map[string]string]kv.Store{&want: whole, &got: store} {
			for row, err := range from.Walk(t.Context(), table, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if from == store || kept(table.BlockOf(row.Sort)) {
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
	for _, test := range []struct {
		window    retention.Window
		piecewise bool
	}{{smallWindow, false}, {smallWindow, true}, {retention.Window{Proofs: 20}, false}} {
		want := chain.Between(t, 0, last)
		mustMove(t, openArchive(t, want), want, test.window, exact)
		kills := 0
		for killed := true; killed; kills++ {
			disk := chain.Between(t, 0, last)
			var store kv.Store = &cut{disk, kills}
			options := exact
			options.Work = 1
			if test.piecewise {
				store = &kvtest.Piecewise{Store: store}
			}
			err := window.New(openArchive(t, store), store, test.window, options).Move(t.Context())
			if killed = errors.Is(err, errCut); !killed && err != nil {
				t.Fatal(err)
			}
			a := openArchive(t, disk)
			if kills%62 == 0 {
				chain.CheckStates(t, a)
			}
			mustMove(t, a, disk, test.window, exact)
			if removed, _, err := a.Removed(t.Context()); err != nil || removed != a.Extent() {
				t.Fatalf("killed at write %d: removed up to %+v, want %+v, %v", kills, removed, a.Extent(), err)
			}
			if !test.piecewise || killed && kills < 3 {
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

// readUntil reads until done is closed and there was a read of each kind: of a pruned state, of pruned tries, and of neither.
// On a busy machine it may not have run before.
func readUntil(ctx context.Context, done <-chan struct{}, chain archive.Chain, a *archive.Archive, random *rand.Rand) error {
	const most = 10_000 // reads after the last block
	pruned := make(map[archive.Kind]int)
	for reads, after := 0, 0; ; reads++ {
		select {
		case <-done:
			states, tries := pruned[archive.OfState], pruned[archive.OfTries]
			if states > 0 && tries > 0 && states+tries < reads {
				return nil
			}
			if after++; after > most {
				return fmt.Errorf("of %d reads %d states and %d tries were pruned", reads, states, tries)
			}
		default:
		}
		settled, _ := a.Settled()
		first := a.Extent().State
		number := max(first, 3) - 3 + random.Uint64N(settled.Number-first+4)
		number = min(number, settled.Number)
		err := chain.CheckRead(ctx, a, number, random)
		if refused := (*archive.Pruned)(nil); errors.As(err, &refused) && refused.First > number && refused.Kind != archive.OfBlock {
			pruned[refused.Kind]++
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
	for to, want := range map[uint64]archive.Pruned{80: {archive.OfState, 80, 81}, 100: {archive.OfTries, 100, 101}} {
		if _, err := archive.Rewind(t.Context(), store, to, nil); !errors.As(err, &pruned) || *pruned != want {
			t.Errorf("rewind below the window: %v, want %+v", err, want)
		}
	}
	for _, to := range []uint64{110, 102} {
		if _, err := archive.Rewind(t.Context(), store, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	a := openArchive(t, store)
	mustMove(t, a, store, smallWindow, exact)
	if want := (archive.Extent{Blocks: 61, State: 81, Tries: 101}); a.Extent() != want {
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
	wider := retention.Window{State: 70}
	for _, test := range []struct{ block, state, tries uint64 }{{120, 81, 101}, {140, 81, 101}, {150, 81, 101}, {160, 91, 101}, {200, 131, 131}} {
		chain.Append(t, a, test.block)
		mustMove(t, a, store, wider, exact)
		if got := a.Extent(); got != (archive.Extent{Blocks: 61, State: test.state, Tries: test.tries}) {
			t.Errorf("at block %d it begins with %+v, want the state of %d", test.block, got, test.state)
		}
	}
	chain.CheckStates(t, a)
}

func TestWindowCheck(t *testing.T) {
	for w, ok := range map[retention.Window]bool{
		{}: true, {State: 5}: true, {State: 5, History: 5}: true, {State: 5, History: 4}: false, {History: 4}: false,
		{Proofs: 5}: true, {Proofs: 5, State: 5, History: 5}: true, {Proofs: 6, State: 5}: false, {Proofs: 3, History: 4}: false,
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
	mustMove(t, openArchive(t, upper), upper, retention.Window{State: 40}, exact)
	lower := chain.Between(t, 0, 81)
	if _, err := join.Run(t.Context(), upper, lower, join.Options{}); !errors.Is(err, join.ErrFit) || !contains(err, "older history was removed") {
		t.Errorf("joined from below: %v", err)
	}
	for _, all := range []bool{true, false} {
		proven := chain.Between(t, 0, 120)
		mustMove(t, openArchive(t, proven), proven, retention.Window{Proofs: 30, State: 40}, exact)
		into, from := lower, proven
		if all {
			into, from = proven, lower
		}
		if _, err := join.Run(t.Context(), into, from, join.Options{}); !errors.Is(err, join.ErrFit) || !contains(err, "states from block 81 on, but trie nodes from block 91 on only") {
			t.Errorf("joined without all trie nodes: %v", err)
		}
	}
	mustJoin(t, lower, upper)
	checkSameRows(t, rowsOf(t, chain.Between(t, 0, 120)), rowsOf(t, lower))
}
