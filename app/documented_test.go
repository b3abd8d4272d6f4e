package app

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// creditTable is what docs/methods.md shows of builtInCosts, and heavyList of which of
// them are heavy.
func creditTable() (creditTable, heavyList string) {
	byCredits := make(map[int][]string)
	var heavy []string
	for method, cost := range builtInCosts() {
		if method != otherCredits {
			byCredits[cost.Credits] = append(byCredits[cost.Credits], "`"+method+"`")
		}
		if cost.Heavy {
			heavy = append(heavy, "`"+method+"`")
		}
	}
	other := builtInCosts()[otherCredits].Credits
	byCredits[other] = append(byCredits[other], "all others")
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(byCredits)) {
		slices.Sort(byCredits[n])
		fmt.Fprintf(&b, "| %d | %s |\n", n, strings.Join(byCredits[n], ", "))
	}
	slices.Sort(heavy)
	return b.String(), strings.Join(heavy, ", ")
}

func TestCreditsAreDocumented(t *testing.T) {
	text := document(t, "methods.md")
	table, heavy := creditTable()
	if !strings.Contains(text, table) {
		t.Errorf("docs/methods.md should have these rows:\n%s", table)
	}
	if !strings.Contains(strings.ReplaceAll(text, "\n", " "), heavy) {
		t.Errorf("docs/methods.md should list these as heavy:\n%s", heavy)
	}
}
