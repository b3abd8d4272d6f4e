package ingest_test

import (
	"os"
	"strings"
	"testing"

	"ashlar/evm/genesis"
	"ashlar/internal/vectors"
)

// TestImportAcrossTheMergeWithoutItsDifficulty imports a chain of another client that
// crosses the merge, by genesis files that do not say when: geth goes by the blocks'
// difficulty alone. Everything but the configuration is as with the right genesis.
func TestImportAcrossTheMergeWithoutItsDifficulty(t *testing.T) {
	right, err := os.ReadFile(vectors.Path(t, "execution-apis", "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := readExport(t, vectors.Path(t, "execution-apis", "chain.rlp"))
	const terminal = `"terminalTotalDifficulty": 4732352`
	if strings.Count(string(right), terminal) != 1 {
		t.Fatalf("the genesis does not have %s", terminal)
	}
	for name, test := range map[string]struct {
		setting  string
		warnings int
	}{
		"right":    {terminal, 0},
		"absent":   {`"terminalTotalDifficulty": null`, 0},
		"64 bits":  {`"terminalTotalDifficulty": 9223372036854775807`, 1},
		"256 bits": {`"terminalTotalDifficulty": 115792089237316195423570985008687907853269984665640564039457584007913129638912`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, warnings, err := genesis.Parse([]byte(strings.Replace(string(right), terminal, test.setting, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) != test.warnings {
				t.Errorf("the warnings are %q, want %d", warnings, test.warnings)
			}
			n := newTargetOf(t, g)
			n.mustImport(blocks)
			head, _ := n.archive.Settled()
			if last := blocks[len(blocks)-1]; head.Number != last.NumberU64() || head.Hash != last.Hash() {
				t.Errorf("the head is %s, want block %d", head, last.NumberU64())
			}
		})
	}
}
