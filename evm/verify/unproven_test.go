package verify_test

import (
	"bytes"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/damage"
	"ashlar/history/retention"
	"ashlar/kv"
)

// TestReportOfStates: the report says which states were compared with the roots of their blocks, of which only the form
// of their rows was checked, and which blocks have none.
func TestReportOfStates(t *testing.T) {
	proofs := keeping(t, testChains()[0], retention.Window{Proofs: 3})                    // of blocks 7 to 9
	all := keeping(t, testChains()[0], retention.Window{Proofs: 3, State: 5, History: 8}) // blocks from 2 on, states from 5 on
	whole := damage.Read(t, imported(t, testChains()[0]), archive.Tables())
	for _, test := range []struct {
		name     string
		store    kv.Store
		from, to uint64
		states   int
		form     *verify.Blocks
		without  *verify.Blocks
	}{
		{"whole", whole, 0, audit.Head, 10, nil, nil},
		{"without old trie nodes", proofs, 0, audit.Head, 3, &verify.Blocks{From: 0, To: 6}, nil},
		{"without old trie nodes", proofs, 2, 4, 0, &verify.Blocks{From: 2, To: 4}, nil},
		{"without old trie nodes", proofs, 7, 8, 2, nil, nil},
		{"without old states", all, 0, audit.Head, 3, &verify.Blocks{From: 5, To: 6}, &verify.Blocks{From: 2, To: 4}},
		{"without old states", all, 4, 4, 0, nil, &verify.Blocks{From: 4, To: 4}},
	} {
		report := mustRun(t, test.store, verify.Options{From: test.from, To: test.to, Full: true})
		same := func(a, b *verify.Blocks) bool { return a == b || a != nil && b != nil && *a == *b }
		if !report.Sound || report.States != test.states || !same(report.Form, test.form) || !same(report.Stateless, test.without) {
			t.Errorf("%s, blocks %d to %d: sound %v, %d states, form %v, none %v, want %d, %v, %v", test.name, test.from, test.to,
				report.Sound, report.States, report.Form, report.Stateless, test.states, test.form, test.without)
		}
	}
}

// TestFormWithoutTrieNodes: rows of states whose trie nodes are not stored are checked as far as that needs no root, also
// if no block of the range has trie nodes.
func TestFormWithoutTrieNodes(t *testing.T) {
	whole := keeping(t, testChains()[0], retention.Window{Proofs: 3})
	tables := archive.NamedTables()
	old := func(table *kv.Table) kv.Row {
		for _, row := range whole.Rows(table) {
			if row.Sort > 0 && row.Sort < 6 && len(row.Value) > 0 || table == tables.Codes {
				return row
			}
		}
		t.Fatalf("no old row of %s", table.Name)
		return kv.Row{}
	}
	changed := func(row kv.Row, change func(*kv.Row)) kv.Row {
		row.Partition, row.Value = bytes.Clone(row.Partition), bytes.Clone(row.Value)
		change(&row)
		return row
	}
	account, slot, code := old(tables.Accounts), old(tables.Slots), old(tables.Codes)
	for _, test := range []struct {
		name    string
		damaged kv.Store
		table   *kv.Table
	}{
		{"an account with a byte too many", whole.With(tables.Accounts, changed(account, func(r *kv.Row) { r.Value = append(r.Value, 1) })), tables.Accounts},
		{"an account with a key too short", whole.With(tables.Accounts, changed(account, func(r *kv.Row) { r.Partition = r.Partition[:31] })), tables.Accounts},
		{"an account that repeats", whole.With(tables.Accounts, changed(account, func(r *kv.Row) { r.Sort++ })), tables.Accounts},
		{"a slot with a zero first", whole.With(tables.Slots, changed(slot, func(r *kv.Row) { r.Value = append([]byte{0}, r.Value...) })), tables.Slots},
		{"a slot of a later block", whole.With(tables.Slots, changed(slot, func(r *kv.Row) { r.Sort = 10 })), tables.Slots},
		{"a missing code", whole.Without(tables.Codes, code), tables.Codes},
		{"another code", whole.With(tables.Codes, changed(code, func(r *kv.Row) { r.Value[0] ^= 1 })), tables.Codes},
	} {
		report := mustRun(t, test.damaged, verify.Options{From: 1, To: 5})
		if report.Sound || report.Finding.Table != test.table.Name {
			t.Errorf("%s: %+v", test.name, report.Finding)
		}
	}
	if report := mustRun(t, whole, verify.Options{From: 1, To: 5}); !report.Sound {
		t.Errorf("without damage: %+v", report.Finding)
	}
}
