package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/era"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/vectors"
	"ashlar/kv"
)

// TestOlderBlocksAreCounted imports a history file into a network that began with a later state: what it adds before the first
// block counts as imported, not as skipped.
func TestOlderBlocksAreCounted(t *testing.T) {
	genesis, folder := vectors.Path(t, "chains", "sync-3000", "genesis.json"), t.TempDir()
	whole := ingesttest.Store(t)
	all, _, err := imports(t, whole, genesis, vectors.Path(t, "chains", "sync-3000", "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	under, err := Family{}.Export(t.Context(), whole, family.Export{Network: "net", Format: "ere", Folder: filepath.Join(folder, "history")})
	if err != nil {
		t.Fatal(err)
	}
	if err := under.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := Family{}.CreateSnapshot(t.Context(), whole, family.NewSnapshot{Folder: filepath.Join(folder, "snapshot"), Block: new(uint64(2000))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	later := ingesttest.Store(t)
	place := family.Place{Name: "net", Open: func(kv.Options) (kv.Store, error) { return keptOpen{later}, nil }}
	loading, err := Family{}.LoadSnapshot(t.Context(), place, family.Snapshot{
		From: filepath.Join(folder, "snapshot"), Block: made.Head().Hash.Hex(), Flags: map[string]string{flagGenesis: genesis},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := loading.Run(t.Context(), nil, new(shown)); err != nil {
		t.Fatal(err)
	}
	if err := loading.Close(); err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(folder, "history")
	checksums := filepath.Join(history, era.ChecksumsName)
	if err := os.WriteFile(checksums, []byte(strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imports(t, later, genesis, history); err == nil || strings.Count(err.Error(), history) != 1 {
		t.Errorf("a history file with another checksum: %v, expected an error that names the file once", err)
	}
	if err := os.Remove(checksums); err != nil {
		t.Fatal(err)
	}
	// The snapshot has the blocks 1744 to 2000.
	done, _, err := imports(t, later, genesis, history)
	if err != nil || done.Blocks != 1743+1000 || done.Skipped != 258 {
		t.Errorf("%d blocks were added and %d skipped, %v, expected 2743 and 258: the genesis, and 1744 to 2000", done.Blocks, done.Skipped, err)
	}
	if done.Transactions == 0 || done.Transactions >= all.Transactions {
		t.Errorf("%d transactions were added, expected less than %d of the whole chain", done.Transactions, all.Transactions)
	}
}
