package audittest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ashlar/history/audit"
	"ashlar/kv"
)

// CheckFindings compares findings with a golden file. In it, a line that begins with >
// describes a damage, and the finding follows. Rows are numbered in key order. With update,
// the file is rewritten.
func CheckFindings(t *testing.T, path string, update bool, whole *Memory, tables []*kv.Table, check func(damaged kv.Store) *audit.Report) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		damaged, err := do(whole, tables, strings.Fields(line)[1:])
		if err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
		report := check(damaged)
		if report.Sound {
			t.Fatalf("%s: not found", strings.TrimSpace(line))
		}
		fmt.Fprintf(&got, "%s%s\n", line, report.Finding.Text())
	}
	if update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got.String() != string(want) {
		t.Errorf("got\n%s", got.String())
	}
}

// do applies one damage: remove TABLE ROW, flip TABLE ROW BIT, or copy TABLE ROW SORT.
func do(whole *Memory, tables []*kv.Table, words []string) (*Memory, error) {
	var index, number int
	if _, err := fmt.Sscan(strings.Join(words[2:], " ")+" 0", &index, &number); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tables, func(t *kv.Table) bool { return t.Name == words[1] })
	if i < 0 {
		return nil, fmt.Errorf("unknown table %s", words[1])
	}
	table := tables[i]
	row := whole.Rows(table)[index]
	switch words[0] {
	case "remove":
		return whole.Without(table, row), nil
	case "flip":
		row.Value = bytes.Clone(row.Value)
		row.Value[number/8] ^= 1 << (number % 8)
		return whole.With(table, row), nil
	case "copy":
		row.Sort = uint64(number)
		return whole.With(table, row), nil
	}
	return nil, fmt.Errorf("unknown damage %s (want remove, flip or copy)", words[0])
}
