package app

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/jsonrpc"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// creditTable returns the table of docs/methods.md that the descriptions of methods
// make, and heavyList its list of heavy methods.
func creditTable(t *testing.T) (creditTable, heavyList string) {
	byCredits := make(map[int][]string)
	var heavy []string
	for _, methods := range methodsOfFamilies(t) {
		for method := range methods.All() {
			if method.Cost.Credits != jsonrpc.UsualCredits {
				byCredits[method.Cost.Credits] = append(byCredits[method.Cost.Credits], "`"+method.Name+"`")
			}
			if method.Cost.Weight == jsonrpc.HeavyWeight {
				heavy = append(heavy, "`"+method.Name+"`")
			}
		}
	}
	byCredits[jsonrpc.UsualCredits] = []string{"all others"}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(byCredits)) {
		slices.Sort(byCredits[n])
		fmt.Fprintf(&b, "| %d | %s |\n", n, strings.Join(slices.Compact(byCredits[n]), ", "))
	}
	slices.Sort(heavy)
	return b.String(), strings.Join(slices.Compact(heavy), ", ")
}

func TestCreditsAreDocumented(t *testing.T) {
	text := document(t, "methods.md")
	table, heavy := creditTable(t)
	if !strings.Contains(text, table) {
		t.Errorf("docs/methods.md should have these rows:\n%s", table)
	}
	if !strings.Contains(strings.ReplaceAll(text, "\n", " "), heavy) {
		t.Errorf("docs/methods.md should list these as heavy:\n%s", heavy)
	}
}
