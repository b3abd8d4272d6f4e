package verify_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/history/retention"
	"ashlar/kv"
)

// TestTracesWithoutTrieNodes: a wrong row in the trace index is named, also of a block before Cancun that cannot be
// executed with its state root.
func TestTracesWithoutTrieNodes(t *testing.T) {
	tables := archive.NamedTables()
	for _, chain := range testChains() {
		whole := keeping(t, chain, retention.Window{Proofs: 1})
		for _, table := range []*kv.Table{tables.TraceCounts, tables.TracePostings, tables.TxChanges} {
			for _, row := range whole.Rows(table) {
				if row.Sort == 0 {
					continue
				}
				flipped := row
				flipped.Value = bytes.Clone(row.Value)
				flipped.Value[0] ^= 1
				for what, damaged := range map[string]kv.Store{"removed": whole.Without(table, row), "flipped": whole.With(table, flipped)} {
					report, err := verify.Run(t.Context(), damaged, verify.Options{To: audit.Head}, nil)
					key := archive.DescribeKey(table, row.Partition, row.Sort)
					if err != nil || report.Sound || report.Finding.Table != table.Name || report.Finding.Key != key || report.Finding.Block != row.Sort {
						t.Fatalf("%s, %s, block %d, %s: %+v, %v", chain.name, key, row.Sort, what, report, err)
					}
				}
			}
		}
	}
}

// TestTracesOfUnreadableBlock: a trace index that is damaged is a finding, also if the row cannot be named because the block
// cannot be executed.
func TestTracesOfUnreadableBlock(t *testing.T) {
	whole := keeping(t, testChains()[0], retention.Window{Proofs: 1})
	tables := archive.NamedTables()
	row := whole.Rows(tables.TracePostings)[0]
	broken := unreadableState{whole.Without(tables.TracePostings, row), row.Sort - 1}
	report, err := verify.Run(t.Context(), broken, verify.Options{To: audit.Head}, nil)
	if err != nil || report.Sound || report.Finding.Table != tables.TraceCounts.Name || report.Finding.Block != row.Sort || !strings.Contains(report.Finding.Got, errUnreadable.Error()) {
		t.Errorf("%+v, %v", report, err)
	}
}

var errUnreadable = errors.New("no account can be read")

// unreadableState is a store in which the accounts as of a block cannot be read.
type unreadableState struct {
	kv.Store
	block uint64
}

// Newest implements kv.Reader.
func (s unreadableState) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if t == archive.NamedTables().Accounts && at == s.block {
		return dst, 0, errUnreadable
	}
	return s.Store.Newest(ctx, t, partition, at, dst)
}
