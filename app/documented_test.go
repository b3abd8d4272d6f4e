package app

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/openrpc"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var update = flag.Bool("update", false, "write the tables of docs/methods.md anew")

// methodTable returns the rows of docs/methods.md for some methods.
func methodTable(methods *jsonrpc.Methods) string {
	var b strings.Builder
	b.WriteString("| Method | Parameters | What it does | Credits |\n|---|---|---|---|\n")
	for m := range methods.All() {
		var params []string
		for _, p := range m.Params {
			if !p.Required {
				p.Name += "?"
			}
			params = append(params, p.Name)
		}
		credits := strconv.Itoa(m.Cost.Credits)
		if m.Cost.Weight == jsonrpc.HeavyWeight {
			credits += ", heavy"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, strings.Join(params, ", "), m.Summary, credits)
	}
	return b.String()
}

// TestMethodsAreDocumented: docs/methods.md has the tables that the descriptions of the
// methods make. With -update it is given them.
func TestMethodsAreDocumented(t *testing.T) {
	const begin, end = "<!-- methods begin -->\n", "<!-- methods end -->"
	want := begin
	for i, family := range []string{"EVM", "Starknet"} {
		_, methods, err := openrpc.Describe(openrpc.Info{}, methodsOfFamilies(t)[i])
		if err != nil {
			t.Fatal(err)
		}
		want += "\n### " + family + " networks\n\n" + methodTable(methods)
	}
	text := document(t, "methods.md")
	before, rest, _ := strings.Cut(text, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("docs/methods.md has no tables between %q and %q", begin, end)
	}
	want = before + want + "\n" + end + after
	if *update {
		if err := os.WriteFile(filepath.Join("..", "docs", "methods.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Error("docs/methods.md differs from the descriptions of methods: run go test ./app -run TestMethodsAreDocumented -update")
	}
}
