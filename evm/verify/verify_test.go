package verify_test

import (
	"errors"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

func mustRun(t *testing.T, store kv.Store, options verify.Options) *verify.Report {
	t.Helper()
	report, err := verify.Run(t.Context(), store, options, new(audit.Progress))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestSound(t *testing.T) {
	for _, chain := range testChains() {
		t.Run(chain.name, func(t *testing.T) {
			store := imported(t, chain)
			for _, options := range []verify.Options{
				{To: audit.Head, Full: true}, {To: audit.Head}, {From: 3, To: 7, Full: true}, {From: 5, To: 5}, {To: 0},
			} {
				report := mustRun(t, store, options)
				if !report.Sound {
					t.Errorf("%+v:\n%s", options, report.Finding.Text())
				}
				if blocks := report.To - report.From + 1; report.Blocks != blocks || report.States != int(blocks) {
					t.Errorf("%+v: %+v", options, report)
				}
			}
		})
	}
}

// TestSample: a sample of states includes the first and the last, and damage to these is found.
func TestSample(t *testing.T) {
	const blocks = 20
	chain := testChain{"demo", func() (*core.Genesis, []*types.Block, error) { return demoChain(blocks) }}
	whole := audittest.Read(t, imported(t, chain), archive.Tables())
	if report := mustRun(t, whole, verify.Options{To: audit.Head}); !report.Sound || report.States >= blocks || report.Blocks != blocks+1 {
		t.Errorf("%+v", report)
	}
	tables := archive.NamedTables()
	for _, table := range []*kv.Table{tables.Accounts, tables.Slots, tables.TrieNodes} {
		damaged := 0
		for _, row := range whole.Rows(table) {
			if row.Sort != blocks && row.Sort != 0 {
				continue
			}
			if damaged++; damaged > 5 {
				break
			}
			report := mustRun(t, whole.Without(table, row), verify.Options{To: audit.Head})
			if report.Sound || report.Finding.Table != table.Name || report.Finding.Block != row.Sort {
				t.Errorf("%s without %s of block %d: %+v", table.Name, archive.DescribeKey(table, row.Partition, row.Sort), row.Sort, report.Finding)
			}
		}
		if damaged == 0 {
			t.Errorf("%s has no row of the first or the last block", table.Name)
		}
	}
}

// TestRange: damage is found if and only if its block is in the range.
func TestRange(t *testing.T) {
	whole := audittest.Read(t, imported(t, testChains()[0]), archive.Tables())
	for _, table := range archive.Tables() {
		for _, row := range whole.Rows(table) {
			if table.BlockOf(row.Sort) != 6 {
				continue
			}
			damaged := whole.Without(table, row)
			if report := mustRun(t, damaged, verify.Options{From: 6, To: 6, Full: true}); report.Sound || report.Finding.Table != table.Name {
				t.Errorf("%s, blocks 6 to 6: %+v", table.Name, report.Finding)
			}
			if report := mustRun(t, damaged, verify.Options{From: 1, To: 4, Full: true}); !report.Sound {
				t.Errorf("%s, blocks 1 to 4:\n%s", table.Name, report.Finding.Text())
			}
			break
		}
	}
	for _, options := range []verify.Options{{From: 3, To: 2}, {To: demoBlocks + 1}, {From: demoBlocks + 1, To: audit.Head}} {
		if _, err := verify.Run(t.Context(), whole, options, nil); !errors.Is(err, audit.ErrRange) {
			t.Errorf("%+v: %v, want ErrRange", options, err)
		}
	}
}
