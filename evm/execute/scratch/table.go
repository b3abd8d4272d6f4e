package scratch

// table has rows with keys, in the order in which they were added. The zero value is empty.
type table[K comparable, V any] struct {
	rows []row[K, V]
	last int // found or added last; the EVM looks a key up several times in a row
	// index has the rows of all keys if there are more than few. Otherwise it is empty and keys are
	// compared one by one: most calls use few, and a map of three takes more than twice as long.
	index map[K]uint32
}

type row[K comparable, V any] struct {
	key   K
	value V
}

const few = 8

// find returns the row of a key.
func (t *table[K, V]) find(k K) (int, bool) {
	if t.last < len(t.rows) && t.rows[t.last].key == k {
		return t.last, true
	}
	if len(t.index) > 0 {
		i, ok := t.index[k]
		if ok {
			t.last = int(i)
		}
		return int(i), ok
	}
	for i := range t.rows {
		if t.rows[i].key == k {
			t.last = i
			return i, true
		}
	}
	return 0, false
}

// add adds a row with a key that no row has. Without room for another one, it replaces the last.
func (t *table[K, V]) add(k K, room bool) int {
	if !room && len(t.rows) > 0 {
		return t.replaceLast(k)
	}
	i := len(t.rows)
	t.rows = append(t.rows, row[K, V]{key: k})
	t.last = i
	switch {
	case len(t.index) > 0:
		t.index[k] = uint32(i)
	case len(t.rows) > few:
		if t.index == nil {
			t.index = make(map[K]uint32)
		}
		for i := range t.rows {
			t.index[t.rows[i].key] = uint32(i)
		}
	}
	return i
}

func (t *table[K, V]) replaceLast(k K) int {
	i := len(t.rows) - 1
	if len(t.index) > 0 {
		delete(t.index, t.rows[i].key)
		t.index[k] = uint32(i)
	}
	t.rows[i], t.last = row[K, V]{key: k}, i
	return i
}

// reset removes all rows.
func (t *table[K, V]) reset() {
	clear(t.rows)
	clear(t.index)
	t.rows, t.last = t.rows[:0], 0
}
