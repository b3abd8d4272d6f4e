package verify_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ashlar/archive"
	"ashlar/kv"
	"ashlar/verify"
)

var update = flag.Bool("update", false, "write testdata/findings.txt anew")

// TestFindings holds what people read to testdata/findings.txt. There a line that
// begins with > does a damage to the chain of old rules, and what is found
// follows. Rows are counted in the order of their keys.
func TestFindings(t *testing.T) {
	const path = "testdata/findings.txt"
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := newMemory(t, imported(t, testChain{"old rules", oldChain}))
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		damaged, err := do(whole, strings.Fields(line)[1:])
		if err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
		report, err := verify.Run(t.Context(), damaged, verify.Options{To: verify.Head, Full: true}, nil)
		if err != nil || report.Sound {
			t.Fatalf("%s: %+v, %v", strings.TrimSpace(line), report, err)
		}
		fmt.Fprintf(&got, "%s%s\n", line, report.Finding.Text())
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got.String() != string(want) {
		t.Errorf("got\n%s", got.String())
	}
}

// do does one damage: remove TABLE ROW, flip TABLE ROW BIT, or copy TABLE ROW SORT.
func do(whole *memory, words []string) (*memory, error) {
	var index, number int
	if _, err := fmt.Sscan(strings.Join(words[2:], " ")+" 0", &index, &number); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(archive.Tables(), func(t *kv.Table) bool { return t.Name == words[1] })
	if i < 0 {
		return nil, fmt.Errorf("no table %s", words[1])
	}
	table := archive.Tables()[i]
	row := whole.rows(table)[index]
	switch words[0] {
	case "remove":
		return whole.without(table, row), nil
	case "flip":
		row.Value = bytes.Clone(row.Value)
		row.Value[number/8] ^= 1 << (number % 8)
		return whole.with(table, row), nil
	case "copy":
		row.Sort = uint64(number)
		return whole.with(table, row), nil
	}
	return nil, fmt.Errorf("no such damage as %s", words[0])
}
