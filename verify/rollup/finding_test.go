package rollup_test

import (
	"flag"
	"testing"

	archive "ashlar/archive/rollup"
	"ashlar/kv"
	"ashlar/verify/audit"
	"ashlar/verify/internal/damage"
	"ashlar/verify/rollup"
)

var update = flag.Bool("update", false, "write testdata/findings.txt anew")

// TestFindings holds what people read to testdata/findings.txt, where a chain whose
// hashes can be recomputed suffers.
func TestFindings(t *testing.T) {
	whole := damage.Read(t, appended(t, sealed(t, sealedPoseidon)), archive.Tables())
	damage.CheckFindings(t, "testdata/findings.txt", *update, whole, archive.Tables(), func(damaged kv.Store) *audit.Report {
		return &mustRun(t, damaged, rollup.Options{To: audit.Head}).Report
	})
}
