package kvtest

import (
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

func testModel(t *testing.T, s kv.Store, operations int) {
	const seed = 1
	c, m := newChooser(seed), newModel()
	for i := range operations {
		if c.IntN(4) == 0 {
			c.write(t, s, m)
		} else {
			c.read(t, s, m)
		}
		if i == operations/4 {
			if err := s.Compact(context.Background(), bothKinds()[0]); err != nil {
				t.Fatal(err)
			}
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
