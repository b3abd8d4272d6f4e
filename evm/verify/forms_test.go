package verify_test

import (
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/kv"
)

// TestOlderForms: archives of the forms that older versions created are sound without the rows that these did not write. Such a
// row is found, and so is a damaged row of their trace index.
func TestOlderForms(t *testing.T) {
	tables := archive.NamedTables()
	newest := audittest.Read(t, imported(t, testChains()[0]), archive.Tables())
	additional := newest.Rows(tables.TxChanges)[3]
	for format, traces := range map[string]bool{"ashlar-evm-3": false, "ashlar-evm-3+traces": true, "ashlar-evm-4": false, "ashlar-evm-4+traces": true} {
		t.Run(format, func(t *testing.T) {
			whole := audittest.Read(t, importedAs(t, testChains()[0], format), archive.Tables())
			options := verify.Options{To: audit.Head, Full: true}
			if report := mustRun(t, whole, options); !report.Sound {
				t.Fatal(report.Finding.Text())
			}
			if n := len(whole.Rows(tables.TxChanges)); n > 0 || (len(whole.Rows(tables.TracePostings)) > 0) != traces {
				t.Errorf("%d rows of %s, %d of %s, want a trace index: %v", n, tables.TxChanges.Name, len(whole.Rows(tables.TracePostings)), tables.TracePostings.Name, traces)
			}
			check := func(what string, damaged kv.Store, table *kv.Table, block uint64) {
				t.Helper()
				if report := mustRun(t, damaged, options); report.Sound || report.Finding.Table != table.Name || report.Finding.Block != block {
					t.Errorf("%s: %+v, want a finding in %s of block %d", what, report.Finding, table.Name, block)
				}
			}
			check("an additional row", whole.With(tables.TxChanges, additional), tables.TxChanges, additional.Sort)
			if traces {
				row := whole.Rows(tables.TracePostings)[0]
				check("a missing row", whole.Without(tables.TracePostings, row), tables.TracePostings, row.Sort)
			}
		})
	}
}
