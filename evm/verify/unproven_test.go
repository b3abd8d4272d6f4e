package verify_test

import (
	"bytes"
	"context"
	"iter"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/history/retention"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestReportOfStates: the report says which states were compared with the roots of their blocks, whose tries were built again
// for that, and which blocks have none.
func TestReportOfStates(t *testing.T) {
	const blocks = 30
	chain := testChain{"demo", func() (*core.Genesis, []*types.Block, error) { return demoChain(blocks) }}
	whole := audittest.Read(t, imported(t, chain), archive.Tables())
	proofs := keeping(t, chain, retention.Window{Proofs: 3})                       // of blocks 28 to 30
	states := keeping(t, chain, retention.Window{Proofs: 3, State: 5, History: 8}) // blocks from 23 on, states from 26 on
	unsorted := *proofs
	proofs.Sorted, states.Sorted = true, true
	for _, test := range []struct {
		name            string
		store           kv.Store
		from, to        uint64
		full            bool
		states, rebuilt int
		bare, stateless *verify.Blocks
	}{
		{"whole", whole, 0, audit.Head, true, 31, 0, nil, nil},
		{"without old trie nodes", proofs, 0, audit.Head, true, 3 + 16, 16, &verify.Blocks{From: 0, To: 27}, nil},
		{"without old trie nodes", proofs, 0, audit.Head, false, 3 + 4, 4, &verify.Blocks{From: 0, To: 27}, nil},
		{"without old trie nodes", proofs, 2, 4, false, 3, 3, &verify.Blocks{From: 2, To: 4}, nil},
		{"without old trie nodes", proofs, 28, 29, false, 2, 0, nil, nil},
		{"in no order", &unsorted, 0, audit.Head, true, 3, 0, &verify.Blocks{From: 0, To: 27}, nil},
		{"without old states", states, 0, audit.Head, true, 5, 2, &verify.Blocks{From: 26, To: 27}, &verify.Blocks{From: 23, To: 25}},
		{"without old states", states, 24, 24, true, 0, 0, nil, &verify.Blocks{From: 24, To: 24}},
	} {
		report := mustRun(t, test.store, verify.Options{From: test.from, To: test.to, Full: test.full})
		same := func(a, b *verify.Blocks) bool { return a == b || a != nil && b != nil && *a == *b }
		if !report.Sound || report.States != test.states || report.Rebuilt != test.rebuilt || !same(report.Bare, test.bare) || !same(report.Stateless, test.stateless) {
			t.Errorf("%s, blocks %d to %d, full: %t: %+v, finding %v", test.name, test.from, test.to, test.full, report, report.Finding)
		}
	}
	built, inForm := mustRun(t, proofs, verify.Options{To: audit.Head}), mustRun(t, &unsorted, verify.Options{To: audit.Head})
	if built.Rows != inForm.Rows {
		t.Errorf("of the same archive %d rows were checked, and %d where no trie was built again", built.Rows, inForm.Rows)
	}
}

// TestDamageWithoutTrieNodes: damage to accounts and slots is found where the tries of all blocks without nodes are built
// again.
func TestDamageWithoutTrieNodes(t *testing.T) {
	tables := archive.NamedTables()
	for _, chain := range testChains() {
		whole := keeping(t, chain, retention.Window{Proofs: 1})
		whole.Sorted = true
		random := rand.New(rand.NewPCG(*seed, 1))
		for _, table := range []*kv.Table{tables.Accounts, tables.Slots} {
			rows := whole.Rows(table)
			for range *damagedRows {
				for _, d := range audittest.Damage(random, whole, table, rows[random.IntN(len(rows))], archive.DescribeKey) {
					d.Memory.Upward = random.IntN(2) == 0
					report, err := verify.Run(t.Context(), d.Memory, verify.Options{To: audit.Head, Full: true}, nil)
					if err != nil || report.Sound {
						t.Errorf("%s, %s, block %d: %s: %+v, %v", chain.name, archive.DescribeKey(table, d.Keys[0].Partition, d.Keys[0].Sort), d.Keys[0].Sort, d.What, report, err)
					}
				}
			}
		}
	}
}

// TestFindingsWithoutTrieNodes: findings name the block and the account.
func TestFindingsWithoutTrieNodes(t *testing.T) {
	whole := keeping(t, testChain{"old rules", oldChain}, retention.Window{Proofs: 1})
	whole.Sorted = true
	audittest.CheckFindings(t, "testdata/rebuilt.txt", *update, whole, archive.Tables(), func(damaged kv.Store) *audit.Report {
		return &mustRun(t, damaged, verify.Options{To: audit.Head, Full: true}).Report
	})
}

// TestUnreadableWhileRebuilt: a table that cannot be read a second time is never called sound, wherever that begins.
func TestUnreadableWhileRebuilt(t *testing.T) {
	whole := keeping(t, testChains()[0], retention.Window{Proofs: 1})
	whole.Sorted = true
	for _, table := range []*kv.Table{archive.NamedTables().Accounts, archive.NamedTables().Slots} {
		rows := len(whole.Rows(table))
		for readable := 0; readable < rows; readable += 1 + rows/20 {
			report, err := verify.Run(t.Context(), &unreadableAgain{Store: whole, table: table, rows: readable}, verify.Options{To: audit.Head}, nil)
			if err != nil || report.Sound || report.Finding.Table != table.Name || !strings.Contains(report.Finding.Got, errUnreadable.Error()) {
				t.Errorf("%s after %d of %d rows: %+v, %v", table.Name, readable, rows, report, err)
			}
		}
	}
}

// unreadableAgain is a store in which the second walk of a table fails after some rows.
type unreadableAgain struct {
	kv.Store
	table *kv.Table
	rows  int
	walks atomic.Int64
}

// Walk implements kv.Store.
func (s *unreadableAgain) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	walk := s.Store.Walk(ctx, t, from)
	if t != s.table || s.walks.Add(1) != 2 {
		return walk
	}
	return func(yield func(kv.Row, error) bool) {
		left := s.rows
		for row, err := range walk {
			if left--; left < 0 {
				yield(kv.Row{}, errUnreadable)
				return
			}
			if !yield(row, err) {
				return
			}
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
