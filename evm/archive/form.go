package archive

import (
	"context"
	"fmt"
	"slices"

	"ashlar/history/rows"
	"ashlar/kv"
)

// form is what the pointer format of docs/format.md says about the rows of an archive. It is
// chosen when the archive is created, and never changes.
type form struct {
	traces  bool // there is a trace index
	changes bool // it has what transactions have changed; only with traces
	hashes  bool // a receipt with logs has the hash of its transaction
}

const (
	formatWithoutHashes = "ashlar-evm-3" // of older versions
	formatWithHashes    = "ashlar-evm-4"
)

// forms are the forms that this package reads and writes.
var forms = []form{{}, {traces: true}, {hashes: true}, {traces: true, hashes: true}, {traces: true, hashes: true, changes: true}}

// String returns the value of the pointer.
func (f form) String() string {
	format := formatWithoutHashes
	if f.hashes {
		format = formatWithHashes
	}
	if f.traces {
		format += "+" + string(TraceIndex)
	}
	if f.changes {
		format += "+changes"
	}
	return format
}

// formats are the values of the pointer that this package knows.
func formats() []string {
	var known []string
	for _, f := range forms {
		known = append(known, f.String())
	}
	return known
}

// formOf returns the form of a store, of which the format was checked.
func formOf(ctx context.Context, store kv.Reader) (form, error) {
	format, err := rows.Format(ctx, store)
	if err != nil {
		return form{}, err
	}
	i := slices.IndexFunc(forms, func(f form) bool { return f.String() == format })
	if i < 0 {
		return form{}, fmt.Errorf("%w: %q", ErrFormat, format)
	}
	return forms[i], nil
}

// newForm returns the form of a new archive.
func newForm(features []Feature) form {
	traces := slices.Contains(features, TraceIndex)
	return form{traces: traces, changes: traces, hashes: true}
}

// StoresHashes reports whether the stored receipts with logs have the hashes of their
// transactions. In archives that older versions created they do not. Receipts that are read from
// a [Source] never do.
func (h *History) StoresHashes() bool { return h.form.hashes }
