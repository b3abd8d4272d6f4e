// Package audittest corrupts copies of stores, for the tests of the consistency checks.
package audittest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"testing"

	"ashlar/kv"
)

// Memory is an in-memory copy of a store's rows that can be modified in any way. Its
// pointers are those of the store.
type Memory struct {
	kv.Store
	tables map[*kv.Table]map[string][]kv.Row // by partition, ascending
	Upward bool                              // walk tables of versions in ascending order too
	Sorted bool                              // walk partitions in ascending order, as an embedded engine does
}

// Read copies all rows of some tables.
func Read(t testing.TB, store kv.Store, tables []*kv.Table) *Memory {
	t.Helper()
	m := &Memory{Store: store, tables: make(map[*kv.Table]map[string][]kv.Row)}
	for _, table := range tables {
		partitions := make(map[string][]kv.Row)
		for row, err := range store.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			row.Partition, row.Value = bytes.Clone(row.Partition), bytes.Clone(row.Value)
			partitions[string(row.Partition)] = append(partitions[string(row.Partition)], row)
		}
		for _, rows := range partitions {
			slices.SortFunc(rows, bySort)
		}
		m.tables[table] = partitions
	}
	return m
}

func bySort(a, b kv.Row) int { return cmp.Compare(a.Sort, b.Sort) }

// Rows returns the rows of a table in key order.
func (m *Memory) Rows(table *kv.Table) (all []kv.Row) {
	for _, partition := range slices.Sorted(maps.Keys(m.tables[table])) {
		all = append(all, m.tables[table][partition]...)
	}
	return all
}

// Without returns a copy without one row.
func (m *Memory) Without(table *kv.Table, gone kv.Row) *Memory {
	return m.changed(table, gone, func(rows []kv.Row) []kv.Row {
		return slices.DeleteFunc(rows, func(row kv.Row) bool { return row.Sort == gone.Sort })
	})
}

// With returns a copy with one row added or replaced.
func (m *Memory) With(table *kv.Table, row kv.Row) *Memory {
	return m.Without(table, row).changed(table, row, func(rows []kv.Row) []kv.Row {
		rows = append(rows, row)
		slices.SortFunc(rows, bySort)
		return rows
	})
}

func (m *Memory) changed(table *kv.Table, at kv.Row, change func([]kv.Row) []kv.Row) *Memory {
	n := &Memory{Store: m.Store, tables: maps.Clone(m.tables), Upward: m.Upward, Sorted: m.Sorted}
	n.tables[table] = maps.Clone(m.tables[table])
	rows := change(slices.Clone(m.tables[table][string(at.Partition)]))
	if n.tables[table][string(at.Partition)] = rows; len(rows) == 0 {
		delete(n.tables[table], string(at.Partition))
	}
	return n
}

// Has reports whether there is a row with a key.
func (m *Memory) Has(table *kv.Table, key kv.Row) bool {
	_, found := slices.BinarySearchFunc(m.tables[table][string(key.Partition)], key, bySort)
	return found
}

func (m *Memory) Get(_ context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	rows := m.tables[t][string(partition)]
	i, found := slices.BinarySearchFunc(rows, kv.Row{Sort: sort}, bySort)
	if !found {
		return dst, kv.ErrNotFound
	}
	return append(dst, rows[i].Value...), nil
}

func (m *Memory) Newest(_ context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	rows := m.tables[t][string(partition)]
	i, found := slices.BinarySearchFunc(rows, kv.Row{Sort: at}, bySort)
	if !found {
		i--
	}
	if i < 0 {
		return dst, 0, kv.ErrNotFound
	}
	return append(dst, rows[i].Value...), rows[i].Sort, nil
}

func (m *Memory) Descend(_ context.Context, t *kv.Table, partition []byte, at uint64, found func(uint64, []byte) (bool, error)) error {
	for _, row := range slices.Backward(m.tables[t][string(partition)]) {
		if row.Sort > at {
			continue
		}
		if enough, err := found(row.Sort, row.Value); enough || err != nil {
			return err
		}
	}
	return nil
}

// Walk yields partitions in random order, as the contract allows, unless Sorted is set.
func (m *Memory) Walk(_ context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		partitions := maps.Keys(m.tables[t])
		if m.Sorted {
			partitions = slices.Values(slices.Sorted(partitions))
		}
		for partition := range partitions {
			rows := m.tables[t][partition]
			if t.Kind == kv.Versions && !m.Upward {
				rows = slices.Clone(rows)
				slices.Reverse(rows)
			}
			for _, row := range rows {
				if row.Sort >= from && !yield(row, nil) {
					return
				}
			}
		}
	}
}
