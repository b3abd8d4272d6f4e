package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/kv"
)

// model is what a store should hold: for each table and partition the rows by
// sort key.
type model struct {
	rows     map[*kv.Table]map[string]map[uint64]string
	pointers map[string]string
}

func newModel() *model {
	return &model{rows: map[*kv.Table]map[string]map[uint64]string{versions: {}, list: {}, last: {}}, pointers: map[string]string{}}
}

func (m *model) put(r row) {
	p := m.rows[r.table][r.partition]
	if p == nil {
		p = map[uint64]string{}
		m.rows[r.table][r.partition] = p
	}
	p[r.sort] = r.value
}

// remove removes the rows of a partition from from to to.
func (m *model) remove(table *kv.Table, partition string, from, to uint64) {
	for _, sort := range m.sorts(table, partition, from, to) {
		delete(m.rows[table][partition], sort)
	}
}

// sorts are the sort keys of a partition from from to to.
func (m *model) sorts(table *kv.Table, partition string, from, to uint64) []uint64 {
	var out []uint64
	for s := range m.rows[table][partition] {
		if s >= from && s <= to {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

func (m *model) get(table *kv.Table, partition string, sort uint64) string {
	v, ok := m.rows[table][partition][sort]
	if !ok {
		return notFound
	}
	return fmt.Sprintf("%q", v)
}

func (m *model) newest(table *kv.Table, partition string, at uint64) string {
	s := m.sorts(table, partition, 0, at)
	if len(s) == 0 {
		return notFound
	}
	newest := s[len(s)-1]
	return fmt.Sprintf("%d=%q", newest, m.rows[table][partition][newest])
}

func (m *model) scan(table *kv.Table, partition string, from, to uint64) string {
	out := ""
	for _, s := range m.sorts(table, partition, from, to) {
		out += fmt.Sprintf("%d=%q ", s, m.rows[table][partition][s])
	}
	return out
}

func (m *model) descend(table *kv.Table, partition string, at uint64, most int) string {
	sorts := m.sorts(table, partition, 0, at)
	slices.Reverse(sorts)
	out := ""
	for _, s := range sorts[:min(most, len(sorts))] {
		out += fmt.Sprintf("%d=%q ", s, m.rows[table][partition][s])
	}
	return out
}

// chooser makes random rows that are close enough together to meet.
type chooser struct {
	*rand.Rand
	partitions []string
}

func newChooser(seed uint64) *chooser {
	c := &chooser{Rand: rand.New(rand.NewPCG(seed, 1)), partitions: partitions()}
	for range 20 {
		p := make([]byte, c.IntN(4))
		for i := range p {
			p[i] = byte(c.IntN(3))
		}
		c.partitions = append(c.partitions, string(p))
	}
	return c
}

func (c *chooser) table() *kv.Table  { return []*kv.Table{versions, list, last}[c.IntN(3)] }
func (c *chooser) partition() string { return c.partitions[c.IntN(len(c.partitions))] }

func (c *chooser) sort() uint64 {
	switch c.IntN(10) {
	case 0:
		return uint64(c.IntN(2))
	case 1:
		return math.MaxUint64 - uint64(c.IntN(2))
	case 2:
		return c.Uint64()
	}
	return uint64(c.IntN(300))
}

// row is a new row, or with luck one that was written before, with the value it had.
func (c *chooser) row(m *model) row {
	r := row{table: c.table(), partition: c.partition(), sort: c.sort()}
	old, ok := m.rows[r.table][r.partition][r.sort]
	if ok {
		r.value = old
		return r
	}
	r.value = fmt.Sprint(c.Uint64())
	if c.IntN(20) == 0 {
		r.value += string(make([]byte, c.IntN(3000)))
	}
	return r
}

// remove changes store and model alike, by a random batch of removals.
func (c *chooser) remove(t *testing.T, s kv.Store, m *model) {
	t.Helper()
	b := s.NewBatch()
	for range c.IntN(4) {
		table, partition, from, to := c.table(), c.partition(), c.sort(), c.sort()
		if c.IntN(2) == 0 {
			to = from
			b.Delete(table, []byte(partition), from)
		} else {
			b.DeleteRange(table, []byte(partition), from, to)
		}
		m.remove(table, partition, from, to)
	}
	write(t, s, b)
}

// write changes store and model alike, by a random batch.
func (c *chooser) write(t *testing.T, s kv.Store, m *model) {
	t.Helper()
	if c.IntN(5) == 0 {
		c.remove(t, s, m)
		return
	}
	b := s.NewBatch()
	for range c.IntN(30) {
		r := c.row(m)
		m.put(r)
		b.Put(r.table, []byte(r.partition), r.sort, []byte(r.value))
	}
	if c.IntN(3) == 0 {
		name, value := fmt.Sprint("pointer ", c.IntN(3)), fmt.Sprint(c.Uint64())
		m.pointers[name] = value
		b.SetPointer(name, []byte(value))
	}
	write(t, s, b)
}

// read compares one random read.
func (c *chooser) read(t *testing.T, s kv.Store, m *model) {
	t.Helper()
	table, partition, from, to := c.table(), c.partition(), c.sort(), c.sort()
	what := fmt.Sprintf("%s %q %d %d", table.Name, partition, from, to)
	switch c.IntN(6) {
	case 0:
		expect(t, "Get "+what, get(s, table, partition, from), m.get(table, partition, from))
	case 1:
		expect(t, "Newest "+what, newest(s, table, partition, from), m.newest(table, partition, from))
	case 2:
		expect(t, "Scan "+what, scan(t, s, table, partition, from, to), m.scan(table, partition, from, to))
	case 3:
		c.leap(t, s, m, table, partition, from, to)
	case 4:
		c.many(t, s, m, table)
	case 5:
		most := 1 + c.IntN(4)
		expect(t, "Descend "+what, descend(t, s, versions, partition, from, most), m.descend(versions, partition, from, most))
	}
}

// leap moves a cursor at random.
func (c *chooser) leap(t *testing.T, s kv.Store, m *model, table *kv.Table, partition string, from, to uint64) {
	t.Helper()
	rest := m.sorts(table, partition, from, to)
	cur := s.Scan(context.Background(), table, []byte(partition), from, to)
	at := from
	for first := true; ; first = false {
		var ok bool
		if c.IntN(2) == 0 {
			if !first && len(rest) > 0 {
				rest = rest[1:]
			}
			ok = cur.Next()
		} else {
			if jump := uint64(c.IntN(40)); at <= math.MaxUint64-jump {
				at += jump
			}
			if c.IntN(4) == 0 {
				at /= 2 // mostly behind: the cursor stays
			}
			for len(rest) > 0 && rest[0] < at {
				rest = rest[1:]
			}
			ok = cur.Seek(at)
		}
		if ok != (len(rest) > 0) || ok && (cur.Sort() != rest[0] || string(cur.Value()) != m.rows[table][partition][rest[0]]) {
			t.Errorf("cursor on %s %q [%d, %d] near %d: got %v, expected %v next", table.Name, partition, from, to, at, ok, rest)
			break
		}
		if !ok {
			break
		}
		at = cur.Sort()
	}
	if err := cur.Close(); err != nil {
		t.Error(err)
	}
}

func (c *chooser) many(t *testing.T, s kv.Store, m *model, table *kv.Table) {
	t.Helper()
	keys := make([]kv.Key, c.IntN(20))
	want, got := map[int]string{}, map[int]string{}
	for i := range keys {
		p, sort := c.partition(), c.sort()
		keys[i] = kv.Key{Partition: []byte(p), Sort: sort}
		if r := m.newest(table, p, sort); r != notFound {
			want[i] = r
		}
	}
	err := s.NewestMany(context.Background(), table, keys, func(i int, sort uint64, value []byte) error {
		got[i] += fmt.Sprintf("%d=%q", sort, value)
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("NewestMany on %s: got %v, %v; expected %v", table.Name, got, err, want)
	}
}

// checkAll compares everything that the store holds with the model, by Walk.
func (m *model) checkAll(t *testing.T, s kv.Store) {
	t.Helper()
	for table, parts := range m.rows {
		want := 0
		for _, rows := range parts {
			want += len(rows)
		}
		got := walk(t, s, table)
		if len(got) != want {
			t.Errorf("Walk of %s: %d rows, expected %d", table.Name, len(got), want)
		}
		for _, r := range got {
			expect(t, fmt.Sprintf("Walk of %s: %q %d", table.Name, r.partition, r.sort), fmt.Sprintf("%q", r.value), m.get(table, r.partition, r.sort))
		}
	}
	for name, value := range m.pointers {
		expect(t, name, pointer(s, name), fmt.Sprintf("%q", value))
	}
}

// walk collects a table and checks that partitions and rows come in one order.
func walk(t *testing.T, s kv.Store, table *kv.Table) []row {
	t.Helper()
	var out []row
	left := map[string]bool{} // partitions that the walk has left
	up, down := false, false
	for r, err := range s.Walk(context.Background(), table, 0) {
		if err != nil {
			t.Errorf("Walk of %s: %v", table.Name, err)
			break
		}
		now := row{table, string(r.Partition), r.Sort, string(r.Value)}
		if n := len(out); n > 0 {
			before := out[n-1]
			if before.partition != now.partition {
				left[before.partition] = true
			} else {
				up, down = up || now.sort > before.sort, down || now.sort < before.sort
				if now.sort == before.sort {
					t.Errorf("Walk of %s: %q %d twice", table.Name, now.partition, now.sort)
				}
			}
		}
		if left[now.partition] {
			t.Errorf("Walk of %s: came back to partition %q", table.Name, now.partition)
		}
		out = append(out, now)
	}
	if up && down {
		t.Errorf("Walk of %s goes up in some places and down in others", table.Name)
	}
	return out
}

func testWalk(t *testing.T, s kv.Store) {
	for _, table := range []*kv.Table{versions, list, last} {
		if rows := walk(t, s, table); len(rows) != 0 {
			t.Errorf("Walk of an empty %s: %d rows", table.Name, len(rows))
		}
	}
	m := newModel()
	b := s.NewBatch()
	b.SetPointer("head", []byte("not a row"))
	for _, table := range []*kv.Table{versions, list, last} {
		for i, p := range partitions() {
			for _, sort := range []uint64{0, 5, math.MaxUint64} {
				r := row{table, p, sort, fmt.Sprintf("%s %d %d", table.Name, i, sort)}
				m.put(r)
				b.Put(table, []byte(p), sort, []byte(r.value))
			}
		}
	}
	write(t, s, b)
	m.checkAll(t, s)
	// Leaving early is allowed, and a walk may be ranged over again.
	rows := s.Walk(context.Background(), list, 0)
	for range 2 {
		for r, err := range rows {
			if err != nil || !bytes.Contains(r.Value, []byte(list.Name)) {
				t.Errorf("got %q, %v", r.Value, err)
			}
			break
		}
	}
}

func testWalkFrom(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		for _, p := range []string{"a", "b", "b\x00", ""} {
			for _, sort := range []uint64{0, 5, 7, math.MaxUint64} {
				put(t, s, row{table, p, sort, "v"})
			}
		}
		put(t, s, row{table, "low", 4, "v"}, row{last, "p", 9, "v"})
		check := func(from uint64, want int) {
			t.Helper()
			n := 0
			for r, err := range s.Walk(context.Background(), table, from) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; r.Sort < from {
					t.Errorf("Walk of %s from %d: row %q %d", table.Name, from, r.Partition, r.Sort)
				}
			}
			if n != want {
				t.Errorf("Walk of %s from %d: %d rows, expected %d", table.Name, from, n, want)
			}
		}
		for range 2 { // from memory, and from the smallest form
			for from, want := range map[uint64]int{0: 17, 1: 13, 5: 12, 6: 8, 8: 4, math.MaxUint64: 4} {
				check(from, want)
			}
			if err := s.Compact(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// testWalkAfter interrupts walks after each partition, and goes on from there.
func testWalkAfter(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		b := s.NewBatch()
		for i := range 60 {
			partition := fmt.Appendf(nil, "%04x", i*i)[:4*min(i, 1)] // the first is empty
			for sort := range uint64(50) {                           // more rows than a small page
				b.Put(table, partition, sort, []byte("v"))
			}
		}
		b.Put(last, []byte("p"), 9, []byte("v"))
		write(t, s, b)
		whole := walk(t, s, table)
		for i, r := range whole {
			if i+1 < len(whole) && whole[i+1].partition == r.partition {
				continue
			}
			rest, share := whole[i+1:], 0.0
			for got, err := range s.WalkAfter(context.Background(), table, []byte(r.partition), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if len(rest) == 0 || rest[0].partition != string(got.Partition) || rest[0].sort != got.Sort {
					t.Fatalf("WalkAfter of %s after %q: row %q %d, expected %d other rows", table.Name, r.partition, got.Partition, got.Sort, len(rest))
				}
				if got.Walked < share || got.Walked > 1 {
					t.Fatalf("WalkAfter of %s: a share of %v after %v", table.Name, got.Walked, share)
				}
				rest, share = rest[1:], got.Walked
			}
			if len(rest) > 0 {
				t.Errorf("WalkAfter of %s after %q: %d rows are missing", table.Name, r.partition, len(rest))
			}
		}
	}
}

func testAllPointers(t *testing.T, s kv.Store) {
	check := func(want map[string][]byte) {
		t.Helper()
		got, err := s.Pointers(context.Background())
		if err != nil || !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("Pointers: %q, %v, expected %q", got, err, want)
		}
	}
	check(nil)
	b := s.NewBatch()
	b.SetPointer("head", []byte("1"))
	b.SetPointer("empty", nil)
	b.SetPointer("another", []byte("name"))
	b.Put(list, []byte("p"), 1, []byte("a row"))
	write(t, s, b)
	check(map[string][]byte{"head": []byte("1"), "empty": {}, "another": []byte("name")})
}

func testModel(t *testing.T, s kv.Store, operations int) {
	const seed = 1
	c, m := newChooser(seed), newModel()
	for i := range operations {
		if c.IntN(4) == 0 {
			c.write(t, s, m)
		} else {
			c.read(t, s, m)
		}
		if i == operations/2 {
			if err := errors.Join(s.Sync(context.Background()), s.Compact(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("after %d operations with seed %d", i+1, seed)
		}
	}
	m.checkAll(t, s)
}
