package verify_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/kv"
)

var (
	damagedRows = flag.Int("rows", 5, "how many rows of each table of each chain suffer every kind of damage")
	seed        = flag.Uint64("seed", 1, "chooses the rows and the damage")
)

// TestDamage applies single damages to each table. Each is found, with the damaged table and row.
func TestDamage(t *testing.T) {
	t.Logf("seed %d", *seed)
	for _, chain := range testChains() {
		whole := audittest.Read(t, imported(t, chain), archive.Tables())
		random := rand.New(rand.NewPCG(*seed, 0))
		for _, table := range archive.Tables() {
			t.Run(chain.name+"/"+table.Name, func(t *testing.T) {
				rows := whole.Rows(table)
				if len(rows) == 0 && chain.name != "Amsterdam" && table == archive.NamedTables().AccessLists {
					return
				}
				if len(rows) == 0 {
					t.Fatal("no row to damage")
				}
				for range *damagedRows {
					row := rows[random.IntN(len(rows))]
					for _, d := range audittest.Damage(random, whole, table, row, archive.DescribeKey) {
						d.Memory.Upward = random.IntN(2) == 0
						checkFound(t, table, d)
					}
				}
			})
		}
	}
}

// checkFound checks that damage is found in its table and named by its key.
func checkFound(t *testing.T, table *kv.Table, d audittest.Damaged) {
	t.Helper()
	what := fmt.Sprintf("%s, block %d: %s", archive.DescribeKey(table, d.Keys[0].Partition, d.Keys[0].Sort), table.BlockOf(d.Keys[0].Sort), d.What)
	report, err := verify.Run(t.Context(), d.Memory, verify.Options{To: audit.Head, Full: true}, nil)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if report.Sound {
		t.Errorf("%s: not found", what)
		return
	}
	named := false
	for _, key := range d.Keys {
		named = named || strings.Contains(report.Finding.Key, archive.DescribeKey(table, key.Partition, key.Sort)) &&
			(report.Finding.Block == table.BlockOf(key.Sort) || table.Name == "codes")
	}
	if report.Finding.Table != table.Name || !named {
		t.Errorf("%s: found\n%s", what, report.Finding.Text())
	}
}
