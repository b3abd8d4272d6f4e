package verify_test

import (
	"flag"
	"testing"

	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/kv"
	"ashlar/starknet/archive"
	"ashlar/starknet/verify"
)

var update = flag.Bool("update", false, "rewrite testdata/findings.txt")

// TestFindings compares the findings about damage to a chain whose hashes can be recomputed with
// testdata/findings.txt.
func TestFindings(t *testing.T) {
	whole := audittest.Read(t, appended(t, sealed(t, sealedPoseidon)), archive.Tables())
	audittest.CheckFindings(t, "testdata/findings.txt", *update, whole, archive.Tables(), func(damaged kv.Store) *audit.Report {
		return &mustRun(t, damaged, verify.Options{To: audit.Head}).Report
	})
}
