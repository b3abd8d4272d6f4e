package audittest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"ashlar/kv"
)

// Damaged is a copy with one change, and the rows that a finding may name.
type Damaged struct {
	What   string
	Memory *Memory
	Keys   []kv.Row
}

// Damage applies every kind of damage to a row. describe describes a key for messages.
func Damage(random *rand.Rand, whole *Memory, table *kv.Table, row kv.Row, describe func(*kv.Table, []byte, uint64) string) []Damaged {
	all := []Damaged{{"removed", whole.Without(table, row), []kv.Row{row}}}
	if len(row.Value) > 0 {
		flipped := row
		flipped.Value = bytes.Clone(row.Value)
		bit := random.IntN(8 * len(row.Value))
		flipped.Value[bit/8] ^= 1 << (bit % 8)
		all = append(all, Damaged{fmt.Sprintf("bit %d of its value flipped", bit), whole.With(table, flipped), []kv.Row{row}})
		cut := row
		cut.Value = row.Value[:len(row.Value)-1]
		all = append(all, Damaged{"cut short", whole.With(table, cut), []kv.Row{row}})
	}
	longer := row
	longer.Value = append(bytes.Clone(row.Value), 1)
	all = append(all, Damaged{"a byte longer", whole.With(table, longer), []kv.Row{row}})

	elsewhere := row
	elsewhere.Partition = bytes.Clone(row.Partition)
	bit := random.IntN(8 * len(row.Partition))
	elsewhere.Partition[bit/8] ^= 1 << (bit % 8)
	later := row
	later.Sort ^= 1 << random.IntN(64)
	for _, other := range []kv.Row{elsewhere, later} {
		if whole.Has(table, other) {
			continue
		}
		what := describe(table, other.Partition, other.Sort)
		all = append(all,
			Damaged{"copied to " + what, whole.With(table, other), []kv.Row{other}},
			Damaged{"moved to " + what, whole.Without(table, row).With(table, other), []kv.Row{row, other}})
	}
	return all
}
