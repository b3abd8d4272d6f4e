package archive_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/archive/join"
	"ashlar/internal/raced"
	"ashlar/kv"
)

// newestForm is what new archives with a trace index have as their format.
const newestForm = "ashlar-evm-4+traces+changes"

// TestForms: archives of each form are created, continued, joined, rewound and have their older history removed, with the rows
// of their form. They are joined only with their like.
func TestForms(t *testing.T) {
	raced.Skip(t)
	const last = 100
	chain := archive.GrowChain(t, 1400, last)
	forms := []string{"ashlar-evm-3", "ashlar-evm-3+traces", "ashlar-evm-4", "ashlar-evm-4+traces", newestForm}
	for i, format := range forms {
		t.Run(format, func(t *testing.T) {
			c := chain.As(format)
			whole := c.Between(t, 0, last)
			want := rowsOf(t, whole)
			checkForm(t, whole, format, last)

			continued := c.Between(t, 0, 30)
			c.Append(t, openArchive(t, continued), last)
			checkSameRows(t, want, rowsOf(t, continued))

			lower := c.Between(t, 0, 50)
			other := chain.As(forms[(i+1)%len(forms)]).Between(t, 50, last)
			if _, err := join.Run(t.Context(), lower, other, join.Options{}); !errors.Is(err, join.ErrFit) || !contains(err, fmt.Sprintf("one has the format %q", format)) {
				t.Errorf("joined with another form: %v", err)
			}
			upper := c.Between(t, 50, last)
			checkTraceRows(t, c, upper, 50, last)
			mustJoin(t, lower, upper)
			checkSameRows(t, want, rowsOf(t, lower))

			if _, err := archive.Rewind(t.Context(), lower, 50, nil); err != nil {
				t.Fatal(err)
			}
			checkSameRows(t, withoutCodes(rowsOf(t, c.Between(t, 0, 50))), withoutCodes(rowsOf(t, lower)))

			a := openArchive(t, whole)
			mustMove(t, a, whole, smallWindow, exact)
			c.CheckStates(t, a)
			checkBlockRows(t, c, whole, a.Extent().Blocks, last)
			checkTraceRows(t, c, whole, a.Extent().State, last)
		})
	}
	if newest := rowsOf(t, chain.Between(t, 0, last)); !maps.Equal(newest, rowsOf(t, chain.As(newestForm).Between(t, 0, last))) {
		t.Errorf("new archives do not have the form %s", newestForm)
	}
}

// checkForm checks which tables of an archive have rows, and whether it returns changes.
func checkForm(t *testing.T, store kv.Store, format string, last uint64) {
	t.Helper()
	tables := archive.NamedTables()
	rows := rowsOf(t, store)
	for table, want := range map[*kv.Table]bool{
		tables.Receipts: true, tables.TraceCounts: strings.Contains(format, "+traces"), tables.TracePostings: strings.Contains(format, "+traces"),
		tables.TxChanges: format == newestForm,
	} {
		if count, _ := of(rows, table); (count > 0) != want {
			t.Errorf("%s has %d rows, want some: %v", table.Name, count, want)
		}
	}
	a, returned := openArchive(t, store), 0
	for number := range last + 1 {
		changes, err := a.Changes(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if changes != nil {
			returned++
		}
	}
	if (returned > 0) != (format == newestForm) {
		t.Errorf("%d blocks have changes", returned)
	}
}

// withoutCodes leaves out codes: those of random chains include some that no account has after its block, which a rewind does
// not find.
func withoutCodes(rows map[string]string) map[string]string {
	maps.DeleteFunc(rows, func(key, _ string) bool { return strings.HasPrefix(key, "codes, ") })
	return rows
}
