package verify_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/archive"
	"ashlar/kv"
	"ashlar/verify"
)

var (
	damagedRows = flag.Int("rows", 5, "how many rows of each table of each chain suffer every kind of damage")
	seed        = flag.Uint64("seed", 1, "chooses the rows and the damage")
)

// damaged is a memory with one change, and the rows that a finding may name.
type damaged struct {
	what   string
	memory *memory
	keys   []kv.Row
}

// TestDamage does one damage at a time to each table, and each is found, with the
// table and the row that suffered it.
func TestDamage(t *testing.T) {
	for _, chain := range testChains() {
		whole := newMemory(t, imported(t, chain))
		random := rand.New(rand.NewPCG(*seed, 0))
		for _, table := range archive.Tables() {
			t.Run(chain.name+"/"+table.Name, func(t *testing.T) {
				rows := whole.rows(table)
				if len(rows) == 0 {
					t.Fatal("no row to damage")
				}
				for range *damagedRows {
					row := rows[random.IntN(len(rows))]
					for _, d := range damages(random, whole, table, row) {
						d.memory.upward = random.IntN(2) == 0
						checkFound(t, table, d)
					}
				}
			})
		}
	}
}

// damages does every kind of damage to a row.
func damages(random *rand.Rand, whole *memory, table *kv.Table, row kv.Row) []damaged {
	all := []damaged{{"removed", whole.without(table, row), []kv.Row{row}}}
	if len(row.Value) > 0 {
		flipped := row
		flipped.Value = bytes.Clone(row.Value)
		bit := random.IntN(8 * len(row.Value))
		flipped.Value[bit/8] ^= 1 << (bit % 8)
		all = append(all, damaged{fmt.Sprintf("bit %d of its value flipped", bit), whole.with(table, flipped), []kv.Row{row}})
		cut := row
		cut.Value = row.Value[:len(row.Value)-1]
		all = append(all, damaged{"cut short", whole.with(table, cut), []kv.Row{row}})
	}
	longer := row
	longer.Value = append(bytes.Clone(row.Value), 1)
	all = append(all, damaged{"a byte longer", whole.with(table, longer), []kv.Row{row}})

	elsewhere := row
	elsewhere.Partition = bytes.Clone(row.Partition)
	bit := random.IntN(8 * len(row.Partition))
	elsewhere.Partition[bit/8] ^= 1 << (bit % 8)
	later := row
	later.Sort ^= 1 << random.IntN(64)
	for _, other := range []kv.Row{elsewhere, later} {
		if whole.has(table, other) {
			continue
		}
		what := archive.DescribeKey(table, other.Partition, other.Sort)
		all = append(all,
			damaged{"copied to " + what, whole.with(table, other), []kv.Row{other}},
			damaged{"moved to " + what, whole.without(table, row).with(table, other), []kv.Row{row, other}})
	}
	return all
}

// checkFound holds that damage is found in its table, and named by its key.
func checkFound(t *testing.T, table *kv.Table, d damaged) {
	t.Helper()
	what := fmt.Sprintf("%s, block %d: %s", archive.DescribeKey(table, d.keys[0].Partition, d.keys[0].Sort), archive.BlockOf(table, d.keys[0].Sort), d.what)
	report, err := verify.Run(t.Context(), d.memory, verify.Options{To: verify.Head, Full: true}, nil)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if report.Sound {
		t.Errorf("%s: not found", what)
		return
	}
	named := false
	for _, key := range d.keys {
		named = named || strings.Contains(report.Finding.Key, archive.DescribeKey(table, key.Partition, key.Sort)) &&
			(report.Finding.Block == archive.BlockOf(table, key.Sort) || table.Name == "codes")
	}
	if report.Finding.Table != table.Name || !named {
		t.Errorf("%s: found\n%s", what, report.Finding.Text())
	}
}
