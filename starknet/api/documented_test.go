package api

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestDocumented holds docs/starknet.md to the methods that there are.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "starknet.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:rollup|starknet)_[A-Za-z]+)` \\|").FindAllSubmatch(text, -1) {
		documented = append(documented, string(row[1]))
	}
	slices.Sort(documented)
	if served := slices.Sorted(maps.Keys(newNetwork(t).methods)); !slices.Equal(documented, served) {
		t.Errorf("docs/starknet.md has %v, served are %v", documented, served)
	}
}
