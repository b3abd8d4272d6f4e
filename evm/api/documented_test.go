package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestDocumented holds docs/methods.md to the methods that there are: each has
// one row in its tables, and no other is there.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "methods.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9]+_[A-Za-z0-9]+)` \\|").FindAllSubmatch(text, -1) {
		documented = append(documented, string(row[1]))
	}
	slices.Sort(documented)
	if served := described(t).Names(); !slices.Equal(documented, served) {
		t.Errorf("docs/methods.md has rows for %v,\nserved are %v", documented, served)
	}
}
