package verify_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet/archive"
	"ashlar/starknet/verify"

	"github.com/ethereum/go-ethereum/common"
)

func mustRun(t *testing.T, store kv.Store, options verify.Options) *verify.Report {
	t.Helper()
	report, err := verify.Run(t.Context(), store, options, new(audit.Progress))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestSound: chains of every kind are sound, in whole and in part, and the report has the number of
// recomputed hashes.
func TestSound(t *testing.T) {
	for _, test := range []struct {
		name       string
		store      kv.Store
		recomputed uint64
	}{
		{"hashes that match no rule", appended(t, madeUp()), 0},
		{sealedPoseidon, appended(t, sealed(t, sealedPoseidon)), madeBlocks},
		{"0.13.2", appended(t, sealed(t, "0.13.2")), madeBlocks},
	} {
		report := mustRun(t, test.store, verify.Options{To: audit.Head})
		if !report.Sound || report.From != firstBlock || report.Blocks != madeBlocks || report.Events == 0 || report.Transactions == 0 {
			t.Errorf("%s: %+v, %v", test.name, report, report.Finding)
		}
		if report.Recomputed != test.recomputed || report.Recomputed+report.Taken != madeBlocks {
			t.Errorf("%s: %d hashes recomputed, %d taken, want %d recomputed", test.name, report.Recomputed, report.Taken, test.recomputed)
		}
		for _, options := range []verify.Options{{From: firstBlock, To: firstBlock}, {From: firstBlock + 3, To: firstBlock + 5}, {From: firstBlock + madeBlocks - 1, To: audit.Head}} {
			report := mustRun(t, test.store, options)
			if !report.Sound || report.Blocks != report.To-report.From+1 || report.From != options.From {
				t.Errorf("%s, %+v: %+v, %v", test.name, options, report, report.Finding)
			}
		}
	}
}

// TestRealBlocks: recorded blocks of public networks are sound. The hashes of those are recomputed
// that do not cover signatures, or whose headers have commitments.
func TestRealBlocks(t *testing.T) {
	for _, test := range []struct {
		id         string
		blocks     []string
		recomputed uint64
	}{
		{"SN_MAIN", []string{"mainnet_block_0", "mainnet_block_1", "mainnet_block_2"}, 3},
		{"SN_MAIN", []string{"mainnet_block_19199"}, 0},
		{"SN_GOERLI2", []string{"goerli2_block_0", "goerli2_block_1", "goerli2_block_2", "goerli2_block_3", "goerli2_block_4", "goerli2_block_5", "goerli2_block_6"}, 4},
		{"SN_SEPOLIA", sepolia(), 7},
		{"SN_SEPOLIA", []string{"sepolia_block_56377"}, 1},
		{"SN_INTEGRATION_SEPOLIA", []string{"sepolia-integration_block_35748", "sepolia-integration_block_35749"}, 2},
		{"SN_INTEGRATION_SEPOLIA", []string{"sepolia-integration_block_38748"}, 1},
	} {
		report := mustRun(t, imported(t, test.id, real(t, test.blocks...)), verify.Options{To: audit.Head})
		if !report.Sound || report.Recomputed != test.recomputed || report.Recomputed+report.Taken != uint64(len(test.blocks)) {
			t.Errorf("%s: %+v, %v, want %d hashes recomputed", test.blocks[0], report, report.Finding, test.recomputed)
		}
	}
}

// TestRange: damage is found if and only if its block is in the range.
func TestRange(t *testing.T) {
	whole := audittest.Read(t, appended(t, sealed(t, sealedPoseidon)), archive.Tables())
	for _, table := range archive.Tables() {
		for _, row := range whole.Rows(table) {
			block := table.BlockOf(row.Sort)
			if block != firstBlock+6 {
				continue
			}
			damaged := whole.Without(table, row)
			if report := mustRun(t, damaged, verify.Options{From: block, To: block}); report.Sound || report.Finding.Table != table.Name {
				t.Errorf("%s, block %d: %+v", table.Name, block, report.Finding)
			}
			if report := mustRun(t, damaged, verify.Options{To: block - 2}); !report.Sound {
				t.Errorf("%s, blocks up to %d:\n%s", table.Name, block-2, report.Finding.Text())
			}
			break
		}
	}
	for _, options := range []verify.Options{{From: firstBlock + 3, To: firstBlock + 2}, {From: firstBlock - 1, To: audit.Head}, {To: firstBlock + madeBlocks}} {
		if _, err := verify.Run(t.Context(), whole, options, nil); !errors.Is(err, audit.ErrRange) {
			t.Errorf("%+v: %v, want ErrRange", options, err)
		}
	}
	empty, _ := create(t, chainID)
	if _, err := verify.Run(t.Context(), empty, verify.Options{To: audit.Head}, nil); !errors.Is(err, audit.ErrRange) {
		t.Errorf("no blocks: %v, want ErrRange", err)
	}
}

// TestPointers: pointers that contradict the rows are found.
func TestPointers(t *testing.T) {
	blocks := sealed(t, sealedPoseidon)
	last := blocks[len(blocks)-1].Ref()
	first := func(number uint64) func(kv.Batch) {
		return func(b kv.Batch) { b.SetPointer("first", binary.BigEndian.AppendUint64(nil, number)) }
	}
	settled := func(ref chain.Ref) func(kv.Batch) { return func(b kv.Batch) { rows.SetSettled(b, ref) } }
	for _, test := range []struct {
		name   string
		change func(kv.Batch)
		want   string // in the finding
	}{
		{"another hash settled", settled(chain.Ref{Number: last.Number, Hash: common.Hash{31: 7}}), "expected the hash in the settled pointer, 0x7"},
		{"a block less settled", settled(blocks[len(blocks)-2].Ref()), "expected no row above block 1026, the last settled"},
		{"a block more settled", settled(chain.Ref{Number: last.Number + 1}), "block 1028: expected a row, got none"},
		{"settled before the first", settled(chain.Ref{Number: 3}), "the first block is 1020, the last settled 3"},
		{"settled too short", func(b kv.Batch) { b.SetPointer("settled", []byte{1}) }, "the settled pointer has 1 bytes"},
		{"another first", first(firstBlock + 1), "expected no row below block 1021, the first block of the archive"},
		{"a block before the first", first(firstBlock - 1), "block 1019: expected a row, got none"},
		{"first too short", func(b kv.Batch) { b.SetPointer("first", nil) }, "the first pointer has 0 bytes"},
		{"an invalid chain ID", func(b kv.Batch) { b.SetPointer("chain", []byte{0xff}) }, "the chain pointer"},
	} {
		store := appended(t, blocks)
		batch := store.NewBatch()
		test.change(batch)
		if err := store.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		report := mustRun(t, store, verify.Options{To: audit.Head})
		if report.Sound || !strings.Contains(report.Finding.Error(), test.want) {
			t.Errorf("%s: found %v, want %q", test.name, report.Finding, test.want)
		}
	}
}
