package rollup

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestDocumented holds docs/rollup.md to the methods that there are.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "rollup.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9]+_[A-Za-z0-9]+)` \\|").FindAllSubmatch(text, -1) {
		if name := string(row[1]); regexp.MustCompile("^(rollup|starknet)_").MatchString(name) {
			documented = append(documented, name)
		}
	}
	slices.Sort(documented)
	if served := slices.Sorted(maps.Keys(newNetwork(t).methods)); !slices.Equal(documented, served) {
		t.Errorf("docs/rollup.md has %v, served are %v", documented, served)
	}
}
