package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/join"
	"ashlar/history/rows"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"
)

// rowsOf returns all rows of a store, by table and key.
func rowsOf(t *testing.T, store kv.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, table := range archive.Tables() {
		for row, err := range store.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s, %s, %d", table.Name, archive.DescribeKey(table, row.Partition, row.Sort), row.Sort)] = string(row.Value)
		}
	}
	return all
}

func checkSameRows(t *testing.T, want, got map[string]string) {
	t.Helper()
	if maps.Equal(want, got) {
		return
	}
	shown := 0
	for key, value := range want {
		if other, ok := got[key]; (!ok || other != value) && shown < 5 {
			t.Errorf("%s: %x, want %x", key, other, value)
			shown++
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok && shown < 10 {
			t.Errorf("%s: %x, want no row", key, value)
			shown++
		}
	}
	t.Fatalf("%d rows, want %d", len(got), len(want))
}

func mustJoin(t *testing.T, to, from kv.Store) join.Done {
	t.Helper()
	done, err := join.Run(t.Context(), to, from, join.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestJoinedRows: four ranges that begin with four states, joined in any order, are byte for
// byte an archive made in one go.
func TestJoinedRows(t *testing.T) {
	const last = 64
	for seed, every := range []uint64{16, 1 << 20, 21, 1 << 20} {
		archive.SetWholeEvery(t, every)
		chain := archive.GrowChain(t, 1200+uint64(seed), last)
		whole := chain.Between(t, 0, last)
		want := rowsOf(t, whole)
		ranges := func() [4]kv.Store {
			return [4]kv.Store{chain.Between(t, 0, 17), chain.Between(t, 17, 31), chain.Between(t, 31, 44), chain.Between(t, 44, last)}
		}
		for name, order := range map[string][][2]int{ // pairs of to and from
			"upwards":   {{0, 1}, {0, 2}, {0, 3}},
			"downwards": {{3, 2}, {3, 1}, {3, 0}},
			"in pairs":  {{0, 1}, {3, 2}, {3, 0}},
			"outwards":  {{1, 2}, {1, 3}, {1, 0}},
		} {
			t.Run(fmt.Sprint(name, " ", every), func(t *testing.T) {
				r := ranges()
				for _, pair := range order {
					mustJoin(t, r[pair[0]], r[pair[1]])
				}
				joined := r[order[len(order)-1][0]]
				checkSameRows(t, want, rowsOf(t, joined))
				a, err := archive.Open(t.Context(), joined)
				if err != nil {
					t.Fatal(err)
				}
				if settled, _ := a.Settled(); settled.Number != last || a.Extent() != (archive.Extent{}) {
					t.Errorf("blocks %+v to %s", a.Extent(), settled)
				}
				if name == "outwards" {
					chain.CheckStates(t, a)
				}
			})
		}
	}
}

// TestJoinedIsContinued: blocks that are appended to a joined archive are stored as in one
// made in one go.
func TestJoinedIsContinued(t *testing.T) {
	chain := archive.GrowChain(t, 1210, 60)
	for name, pair := range map[string][2]kv.Store{
		"above": {chain.Between(t, 0, 20), chain.Between(t, 20, 40)},
		"below": {chain.Between(t, 20, 40), chain.Between(t, 0, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			done := mustJoin(t, pair[0], pair[1])
			if done.Border != 20 || done.First != 0 || done.Settled.Number != 40 || done.Rows == 0 {
				t.Errorf("joined: %+v", done)
			}
			a, err := archive.Open(t.Context(), pair[0])
			if err != nil {
				t.Fatal(err)
			}
			chain.Append(t, a, 60)
			checkSameRows(t, rowsOf(t, chain.Between(t, 0, 60)), rowsOf(t, pair[0]))
		})
	}
}

// TestJoinRefuses: archives that do not fit are refused, and stay as they are.
func TestJoinRefuses(t *testing.T) {
	chain := archive.GrowChain(t, 1220, 50)
	other := archive.GrowChain(t, 1221, 50)
	for _, test := range []struct {
		name     string
		to, from kv.Store
		want     string
	}{
		{"gap", chain.Between(t, 0, 20), chain.Between(t, 23, 40), "those of blocks 21 to 22 are missing (want the lower one to end with block 23)"},
		{"gap below", chain.Between(t, 23, 40), chain.Between(t, 0, 20), "those of blocks 21 to 22 are missing (want the lower one to end with block 23)"},
		{"overlap", chain.Between(t, 0, 25), chain.Between(t, 20, 40), "take the lower one back by `ashlar rewind` with --to 20"},
		{"part", chain.Between(t, 0, 40), chain.Between(t, 10, 30), "one has all the states of the other, so there is nothing to join"},
		{"other chain", chain.Between(t, 0, 20), other.Between(t, 20, 40), "holds another chain: block 0 has the hash 0x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, beside := rowsOf(t, test.to), rowsOf(t, test.from)
			_, err := join.Run(t.Context(), test.to, test.from, join.Options{})
			if !errors.Is(err, join.ErrFit) || !contains(err, test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			checkSameRows(t, before, rowsOf(t, test.to))
			checkSameRows(t, beside, rowsOf(t, test.from))
			if _, err := archive.Open(t.Context(), test.to); err != nil {
				t.Errorf("open: %v", err)
			}
		})
	}
}

// TestJoinRefusesDamage: a row of the state at the border that differs is named, in every
// table and on either side.
func TestJoinRefusesDamage(t *testing.T) {
	chain := archive.GrowChain(t, 1230, 40)
	tables := archive.NamedTables()
	for _, table := range []*kv.Table{tables.Accounts, tables.Slots, tables.TrieNodes} {
		for _, upper := range []bool{false, true} {
			t.Run(fmt.Sprint(table.Name, " ", upper), func(t *testing.T) {
				to, from := chain.Between(t, 0, 20), chain.Between(t, 20, 40)
				key := rowAt(t, from, table, 20)
				damaged, sort := from, key.Sort
				if !upper {
					var err error
					if _, sort, err = to.Newest(t.Context(), table, key.Partition, 20, nil); err != nil {
						t.Fatal(err)
					}
					damaged = to
				}
				batch := damaged.NewBatch()
				batch.Put(table, key.Partition, sort, []byte{0, 1, 2, 3})
				if err := damaged.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				_, err := join.Run(t.Context(), to, from, join.Options{})
				if place := archive.DescribeKey(table, key.Partition, 20); !errors.Is(err, join.ErrFit) || !contains(err, table.Name+", "+place) {
					t.Errorf("%v, want the place %s", err, place)
				}
			})
		}
	}
}

// rowAt returns the key of a row of a block.
func rowAt(t *testing.T, store kv.Store, table *kv.Table, block uint64) kv.Key {
	t.Helper()
	for row, err := range store.Walk(t.Context(), table, block) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Sort == block {
			return kv.Key{Partition: append([]byte(nil), row.Partition...), Sort: block}
		}
	}
	t.Fatalf("%s has no row of block %d", table.Name, block)
	return kv.Key{}
}

func contains(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}

// cut is a store whose writes fail after a while, as if the process had been killed.
type cut struct {
	kv.Store
	left int
}

var errCut = errors.New("cut off")

func (c *cut) fail() error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return nil
}

func (c *cut) Write(ctx context.Context, b kv.Batch) error {
	if err := c.fail(); err != nil {
		return err
	}
	return c.Store.Write(ctx, b)
}

func (c *cut) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if err := c.fail(); err != nil {
		return err
	}
	return c.Store.CompareAndSet(ctx, name, old, value)
}

// TestKilledJoin kills a join at each of its writes. Nothing opens the archive before the same
// join has been completed, by which it is as if it had never been interrupted.
func TestKilledJoin(t *testing.T) {
	raced.Skip(t)
	chain := archive.GrowChain(t, 1240, 30)
	want := rowsOf(t, chain.Between(t, 0, 30))
	lower, upper := chain.Between(t, 0, 14), chain.Between(t, 14, 30)
	for name, from := range map[string]kv.Store{"above": upper, "below": lower} {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for killed := true; killed; kills++ {
				to := chain.Between(t, 0, 14)
				if name == "below" {
					to = chain.Between(t, 14, 30)
				}
				var store kv.Store = &cut{to, kills}
				if kills%2 == 1 {
					store = &kvtest.Piecewise{Store: store}
				}
				_, err := join.Run(t.Context(), store, from, join.Options{BatchBytes: 8 << 10})
				if killed = errors.Is(err, errCut); !killed && err != nil {
					t.Fatal(err)
				}
				if killed && kills > 1 { // the first writes are the pointer join
					if _, err := archive.Open(t.Context(), to); !errors.Is(err, rows.ErrJoining) {
						t.Fatalf("killed at write %d: opened, %v", kills, err)
					}
					other := chain.Between(t, 14, 29)
					if name == "below" {
						other = chain.Between(t, 3, 14)
					}
					if _, err := join.Run(t.Context(), to, other, join.Options{}); !errors.Is(err, join.ErrFit) {
						t.Fatalf("killed at write %d: joined with another one, %v", kills, err)
					}
				}
				if killed {
					mustJoin(t, to, from)
				}
				checkSameRows(t, want, rowsOf(t, to))
				if _, err := archive.Open(t.Context(), to); err != nil {
					t.Fatalf("killed at write %d: %v", kills, err)
				}
			}
			if kills < 8 {
				t.Errorf("the join has only %d writes", kills)
			}
		})
	}
}

// TestGiveUpJoin: a join that adds rows above the settled block can be given up.
func TestGiveUpJoin(t *testing.T) {
	chain := archive.GrowChain(t, 1250, 30)
	for left := 2; left < 8; left++ {
		to := chain.Between(t, 0, 14)
		before := rowsOf(t, to)
		if _, err := join.Run(t.Context(), &cut{to, left}, chain.Between(t, 14, 30), join.Options{BatchBytes: 4 << 10}); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if _, err := archive.Rewind(t.Context(), to, 14, nil); err != nil {
			t.Fatal(err)
		}
		checkSameRows(t, before, rowsOf(t, to))
		a, err := archive.Open(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		chain.Append(t, a, 30)
	}
	to := chain.Between(t, 14, 30)
	if _, err := join.Run(t.Context(), &cut{to, 3}, chain.Between(t, 0, 14), join.Options{BatchBytes: 4 << 10}); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if _, err := archive.Rewind(t.Context(), to, 20, nil); !errors.Is(err, rows.ErrJoining) {
		t.Errorf("rewind during a join from below: %v", err)
	}
}

// TestKilledGiveUp kills a rewind that gives up a join at each of its writes. After that the same join
// is refused, or adds all rows: those that were removed too.
func TestKilledGiveUp(t *testing.T) {
	chain := archive.GrowChain(t, 1260, 30)
	before, want := rowsOf(t, chain.Between(t, 0, 14)), rowsOf(t, chain.Between(t, 0, 30))
	upper := chain.Between(t, 14, 30)
	kills := 0
	for killed := true; killed; kills++ {
		to := chain.Between(t, 0, 14)
		if _, err := join.Run(t.Context(), &cut{to, 6}, upper, join.Options{BatchBytes: 4 << 10}); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		var store kv.Store = &cut{to, kills}
		if kills%2 == 1 {
			store = &kvtest.Piecewise{Store: store}
		}
		_, err := archive.Rewind(t.Context(), store, 14, nil)
		if killed = errors.Is(err, errCut); !killed && err != nil {
			t.Fatal(err)
		}
		_, err = join.Run(t.Context(), to, upper, join.Options{})
		if errors.Is(err, rows.ErrRewinding) {
			if _, err := archive.Rewind(t.Context(), to, 14, nil); err != nil {
				t.Fatalf("killed at write %d: %v", kills, err)
			}
			checkSameRows(t, before, rowsOf(t, to))
			_, err = join.Run(t.Context(), to, upper, join.Options{})
		}
		if err != nil {
			t.Fatalf("killed at write %d: %v", kills, err)
		}
		checkSameRows(t, want, rowsOf(t, to))
	}
	if kills < 6 {
		t.Errorf("the rewind has only %d writes", kills)
	}
}
