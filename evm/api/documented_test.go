package api

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/query"

	"github.com/ethereum/go-ethereum/params"
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

	executor, err := execute.New(params.MainnetChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	methods := New(query.NewChain(nil, nil, executor), Config{}).Methods()
	served := slices.Sorted(maps.Keys(methods))
	for _, name := range served {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/methods.md has no row for %s", name)
		}
	}
	for i, name := range documented {
		if methods[name] == nil {
			t.Errorf("docs/methods.md has a row for %s, which is not served", name)
		}
		if i > 0 && documented[i-1] == name {
			t.Errorf("docs/methods.md has two rows for %s", name)
		}
	}
}
