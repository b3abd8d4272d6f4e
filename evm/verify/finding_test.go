package verify_test

import (
	"flag"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/kv"
)

var update = flag.Bool("update", false, "rewrite testdata/findings.txt")

// TestFindings compares the findings about damage to the chain of old rules with
// testdata/findings.txt.
func TestFindings(t *testing.T) {
	whole := audittest.Read(t, imported(t, testChain{"old rules", oldChain}), archive.Tables())
	audittest.CheckFindings(t, "testdata/findings.txt", *update, whole, archive.Tables(), func(damaged kv.Store) *audit.Report {
		return &mustRun(t, damaged, verify.Options{To: audit.Head, Full: true}).Report
	})
}
