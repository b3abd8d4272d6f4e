package verify_test

import (
	"flag"
	"testing"

	"ashlar/history/audit"
	"ashlar/history/audit/damage"
	"ashlar/kv"
	"ashlar/starknet/archive"
	"ashlar/starknet/verify"
)

var update = flag.Bool("update", false, "write testdata/findings.txt anew")

// TestFindings holds what people read to testdata/findings.txt, where a chain whose
// hashes can be recomputed suffers.
func TestFindings(t *testing.T) {
	whole := damage.Read(t, appended(t, sealed(t, sealedPoseidon)), archive.Tables())
	damage.CheckFindings(t, "testdata/findings.txt", *update, whole, archive.Tables(), func(damaged kv.Store) *audit.Report {
		return &mustRun(t, damaged, verify.Options{To: audit.Head}).Report
	})
}
