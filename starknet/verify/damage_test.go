package verify_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"ashlar/history/audit"
	"ashlar/history/audit/audittest"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/verify"

	"github.com/ethereum/go-ethereum/common"
)

var (
	damagedRows = flag.Int("rows", 3, "how many rows of each table of each chain suffer every kind of damage")
	seed        = flag.Uint64("seed", 1, "chooses the rows and the damage")
)

// The chains to be damaged. Hashes of the first two can be recomputed.
const (
	sealedPoseidon = "0.14.0"
	realPedersen   = "0.12.3"
	unsealed       = "no rule"
)

// TestDamage applies single damages to each table. Each is found, except for a change to something
// that is stored once and not covered by a hash. If the hash covers the whole block, the damaged
// table and row are named, otherwise the block.
func TestDamage(t *testing.T) {
	raced.Skip(t)
	t.Logf("seed %d", *seed)
	for _, version := range []string{sealedPoseidon, realPedersen, unsealed} {
		t.Run(version, func(t *testing.T) {
			whole := audittest.Read(t, chainOf(t, version), archive.Tables())
			sound := mustRun(t, whole, verify.Options{To: audit.Head})
			random := rand.New(rand.NewPCG(*seed, 0))
			for _, table := range archive.Tables() {
				rows := whole.Rows(table)
				if len(rows) == 0 {
					t.Fatalf("%s has no row to damage", table.Name)
				}
				done, seen := 0, 0
				for range *damagedRows {
					row := rows[random.IntN(len(rows))]
					for _, d := range audittest.Damage(random, whole, table, row, archive.DescribeKey) {
						done++
						if checkFound(t, version, table, whole, d, sound.Recomputed) {
							seen++
						}
					}
				}
				t.Logf("%s: %d of %d were found, the others cannot be", table.Name, seen, done)
			}
		})
	}
}

// chainOf returns a chain to be damaged.
func chainOf(t *testing.T, version string) kv.Store {
	t.Helper()
	switch version {
	case sealedPoseidon:
		return appended(t, sealed(t, version))
	case realPedersen:
		return imported(t, "SN_SEPOLIA", real(t, sepolia()...))
	}
	return appended(t, madeUp())
}

// checkFound checks that damage is found in its table and named by its key; or that it cannot be
// found, or makes a block's hash one that cannot be recomputed. It returns whether it was found.
func checkFound(t *testing.T, version string, table *kv.Table, whole *audittest.Memory, d audittest.Damaged, recomputed uint64) bool {
	t.Helper()
	block := table.BlockOf(d.Keys[0].Sort)
	what := fmt.Sprintf("%s, block %d: %s", archive.DescribeKey(table, d.Keys[0].Partition, d.Keys[0].Sort), block, d.What)
	report := mustRun(t, d.Memory, verify.Options{To: audit.Head})
	if report.Sound {
		fewer := report.Recomputed < recomputed
		if !fewer && !cannotBeSeen(t, version, whole, d.Memory, block) {
			t.Errorf("%s: not found", what)
		}
		return false
	}
	named := version != sealedPoseidon && report.Finding.Block == block // a hash does not show which of two rows is wrong
	for _, key := range d.Keys {
		named = named || report.Finding.Table == table.Name && report.Finding.Block == table.BlockOf(key.Sort) &&
			(strings.Contains(report.Finding.Key, archive.DescribeKey(table, key.Partition, key.Sort)) ||
				strings.Contains(report.Finding.Key, "one of the rows of its")) // a hash does not show which
	}
	if !named {
		t.Errorf("%s: found\n%s", what, report.Finding.Text())
	}
	return true
}

// cannotBeSeen reports whether a block was changed only in data that is stored once and not covered
// by a hash of its version.
func cannotBeSeen(t *testing.T, version string, whole, damaged kv.Store, number uint64) bool {
	t.Helper()
	seen := func(store kv.Store) *starknet.Block {
		a, err := archive.OpenUnchecked(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		block, err := a.Settled(a.Span()).Block(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		switch version {
		case sealedPoseidon:
			return inPoseidon(block)
		case realPedersen:
			return inPedersen(inPoseidon(block))
		}
		return inNoHash(inPedersen(inPoseidon(block)))
	}
	return reflect.DeepEqual(seen(whole), seen(damaged))
}

// inPoseidon returns the parts of a block covered by hashes since 0.13.4.
func inPoseidon(block *starknet.Block) *starknet.Block {
	block.Status = 0
	for i := range block.Transactions {
		tx := &block.Transactions[i]
		tx.Kind, tx.Version, tx.ContractAddress, tx.MessageHash, tx.Receipt.Gas.L2 = 0, 0, starknet.Felt{}, common.Hash{}, 0
	}
	return block
}

// inPedersen returns the parts of a block covered by hashes until 0.13.1, and the part of
// transaction hashes that is in the look-up table.
func inPedersen(block *starknet.Block) *starknet.Block {
	none := starknet.GasPrice{}
	block.L1GasPrice, block.L1DataGasPrice, block.L2GasPrice, block.L1DataMode, block.Version = none, none, none, 0, ""
	block.Commitments = starknet.Commitments{Transactions: block.Commitments.Transactions, Events: block.Commitments.Events}
	for i := range block.Transactions {
		tx := &block.Transactions[i]
		tx.Receipt = starknet.Receipt{Events: tx.Receipt.Events}
		if len(tx.Receipt.Events) == 0 {
			clear(tx.Hash[6:])
		}
	}
	return block
}

// inNoHash returns the parts of a block that are also stored in other rows or blocks.
func inNoHash(block *starknet.Block) *starknet.Block {
	block.Header = starknet.Header{Number: block.Number, Hash: block.Hash, Parent: block.Parent}
	for i := range block.Transactions {
		for j := range block.Transactions[i].Receipt.Events {
			event := &block.Transactions[i].Receipt.Events[j]
			event.Data, event.Keys = nil, event.Keys[:min(len(event.Keys), archive.IndexedKeys)]
		}
	}
	return block
}
