package kvtest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"ashlar/kv"
)

func testScan(t *testing.T, s kv.Store) {
	const top = math.MaxUint64
	for _, table := range bothKinds() {
		expect(t, "Scan of an empty store", scan(t, s, table, "b", 0, top), "")
		put(t, s, row{table, "a", 25, "a"}, row{table, "c", 25, "c"},
			row{table, "b", 30, "z"}, row{table, "b", 10, "x"}, row{table, "b", 20, "y"})
		for _, c := range []struct {
			from, to uint64
			want     string
		}{
			{0, top, `10="x" 20="y" 30="z" `},
			{10, 30, `10="x" 20="y" 30="z" `},
			{11, 29, `20="y" `},
			{10, 29, `10="x" 20="y" `},
			{20, 20, `20="y" `},
			{21, 29, ``},
			{31, top, ``},
			{0, 9, ``},
			{30, 10, ``},
			{top, 0, ``},
		} {
			expect(t, fmt.Sprintf("%s [%d, %d]", table.Name, c.from, c.to), scan(t, s, table, "b", c.from, c.to), c.want)
		}
		expect(t, "Scan of an absent partition", scan(t, s, table, "bb", 0, top), "")
	}
}

// step is one move of a cursor and what it leads to: -1 is Next, anything else
// Seek; want is the row's sort key, or -1 for no row.
type step struct {
	move int64
	want int64
}

func testSeek(t *testing.T, s kv.Store) {
	const next, none = -1, -1
	for _, table := range bothKinds() {
		for i := range 10 {
			put(t, s, row{table, "b", uint64(i * 10), fmt.Sprint(i * 10)})
		}
		put(t, s, row{table, "a", 45, "a"}, row{table, "c", 45, "c"})
		for _, c := range []struct {
			from, to uint64
			steps    []step
		}{
			{0, 100, []step{{0, 0}, {10, 10}, {11, 20}, {90, 90}, {91, none}, {next, none}}},
			{0, 100, []step{{5, 10}, {next, 20}, {30, 30}, {30, 30}, {next, 40}, {100, none}}},
			{0, 100, []step{{next, 0}, {0, 0}, {1, 10}, {next, 20}, {next, 30}, {35, 40}, {next, 50}}},
			{0, 100, []step{{25, 30}, {30, 30}, {25, 30}, {10, 30}, {0, 30}, {next, 40}, {next, 50}, {40, 50}, {51, 60}}},
			{20, 50, []step{{0, 20}, {next, 30}, {50, 50}, {20, 50}, {next, none}, {50, none}, {20, none}}},
			{20, 50, []step{{next, 20}, {51, none}, {next, none}}},
			{25, 45, []step{{40, 40}, {next, none}}},
			{95, 99, []step{{next, none}, {96, none}}},
			{50, 20, []step{{30, none}, {next, none}}},
			{0, math.MaxUint64, []step{{89, 90}, {math.MaxInt64, none}}},
		} {
			what := fmt.Sprintf("%s [%d, %d] %v", table.Name, c.from, c.to, c.steps)
			cur := s.Scan(context.Background(), table, []byte("b"), c.from, c.to)
			for i, st := range c.steps {
				checkStep(t, fmt.Sprintf("%s step %d", what, i), cur, st)
			}
			if err := cur.Close(); err != nil {
				t.Errorf("%s: Close: %v", what, err)
			}
		}
	}
}

func checkStep(t *testing.T, what string, c kv.Cursor, st step) {
	t.Helper()
	var ok bool
	if st.move < 0 {
		ok = c.Next()
	} else {
		ok = c.Seek(uint64(st.move))
	}
	if ok != (st.want >= 0) {
		t.Errorf("%s: got %v, expected row %d", what, ok, st.want)
	}
	if ok && (c.Sort() != uint64(st.want) || string(c.Value()) != fmt.Sprint(st.want)) {
		t.Errorf("%s: got %d=%q, expected %d", what, c.Sort(), c.Value(), st.want)
	}
}

func testCursorAfterClose(t *testing.T, s kv.Store) {
	put(t, s, row{list, "p", 1, "1"}, row{list, "p", 2, "2"})
	c := s.Scan(context.Background(), list, []byte("p"), 0, 9)
	if !c.Next() {
		t.Fatal("no first row")
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if c.Next() || c.Seek(2) {
		t.Error("a closed cursor moves")
	}
	expect(t, "the store after a cursor", scan(t, s, list, "p", 0, 9), `1="1" 2="2" `)
}
