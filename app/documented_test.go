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

// errorTable returns the rows of docs/methods.md for the errors.
func errorTable() string {
	var b strings.Builder
	b.WriteString("| Code | Message | Meaning | What to do |\n|---|---|---|---|\n")
	all := jsonrpc.Explanations()
	for i, e := range all {
		message := "any"
		if e.Message != "" {
			message = "`" + e.Message + "`"
		} else if i > 0 && all[i-1].Code == e.Code {
			message = "any other"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", e.Code, message, e.Meaning, e.Remedy)
	}
	return b.String()
}

// replaceBetween replaces the part of docs/methods.md from begin up to end.
func replaceBetween(t *testing.T, text, begin, part, end string) string {
	t.Helper()
	before, rest, _ := strings.Cut(text, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("docs/methods.md has no tables between %q and %q", begin, end)
	}
	return before + part + end + after
}

// forwardedMethods comes before the table of the methods of forwarded networks.
const forwardedMethods = `The nodes have to have them, too; [more](forwarded.md#answers) can be added by name. With
[` + "`check: headers`" + `](forwarded.md#checked-by-header), ` + "`eth_getBlockReceipts`, `eth_getLogs`, `eth_getFilterLogs`" + ` and
` + "`rollup_getEvents`" + ` are heavy while they recompute what nodes have sent.

`

// TestMethodsAreDocumented: docs/methods.md has the tables that the descriptions of the
// methods make. With -update it is given them.
func TestMethodsAreDocumented(t *testing.T) {
	const begin, end = "<!-- methods begin -->\n", "<!-- methods end -->"
	want := begin
	for i, family := range []string{"EVM", "Starknet", "Forwarded"} {
		_, methods, err := openrpc.Describe(openrpc.Info{}, methodsOfFamilies(t)[i])
		if err != nil {
			t.Fatal(err)
		}
		want += "\n### " + family + " networks\n\n"
		if family == "Forwarded" {
			want += forwardedMethods
		}
		want += methodTable(methods)
	}
	text := document(t, "methods.md")
	want = replaceBetween(t, text, begin, want+"\n", end)
	const errorsBegin, errorsEnd = "<!-- errors begin -->\n", "<!-- errors end -->"
	want = replaceBetween(t, want, errorsBegin, errorsBegin+"\n"+errorTable()+"\n", errorsEnd)
	if *update {
		if err := os.WriteFile(filepath.Join("..", "docs", "methods.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Error("docs/methods.md differs from the descriptions of methods: run go test ./app -run TestMethodsAreDocumented -update")
	}
}
