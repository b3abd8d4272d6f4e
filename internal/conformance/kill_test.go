package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rlp"

	"ashlar/archive"
	"ashlar/internal/node"
	"ashlar/kv"
	"ashlar/kv/pebble"
)

const (
	kills     = 20
	killSeed  = 4
	partBlock = 30 // blocks in each of the files that the chain is cut into
)

// TestKilledImport kills imports at random moments, resumes each, and compares
// what is stored in the end, row by row, with what an undisturbed import stored.
// An import that ends before its moment comes is compared too, and a fresh one is
// begun, until all kills have landed.
//
// The chain comes in many files: the end of each is a moment from which a killed
// import goes on, so that kills land before, between and after such moments.
func TestKilledImport(t *testing.T) {
	genesis, parts := generateParts(t)
	undisturbed := newService(t)
	started := time.Now()
	undisturbed.importFiles(t, genesis, parts...)
	whole := time.Since(started)

	random := rand.New(rand.NewPCG(killSeed, 0))
	disturbed := newService(t)
	midway := 0
	for landed := 0; landed < kills; {
		p, err := disturbed.Import(t.Context(), genesis, parts...)
		if err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(random.Int64N(int64(whole)))
		if killAfter(p, moment) {
			landed++
			head, known := headAfterKill(t, disturbed)
			t.Logf("kill %d of seed %d landed %v into about %v; block %d was kept (%t)", landed, killSeed,
				moment.Round(time.Millisecond), whole.Round(time.Millisecond), head, known)
			if head > 0 {
				midway++
			}
			continue
		}
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		compareStores(t, undisturbed, disturbed)
		disturbed = newService(t)
	}
	if midway == 0 {
		t.Errorf("none of %d kills left an import that could be resumed behind the first block", kills)
	}
	disturbed.importFiles(t, genesis, parts...)
	compareStores(t, undisturbed, disturbed)
	if a, b := latest(t, undisturbed.serve(t)), latest(t, disturbed.serve(t)); a != b {
		t.Errorf("the killed import's head is %+v, the undisturbed one's %+v", b, a)
	}
}

// killAfter kills the process after a while and says whether it was still running.
func killAfter(p *node.Process, wait time.Duration) bool {
	select {
	case <-p.Done():
		return false
	case <-time.After(wait):
		p.Kill()
		return p.ExitCode() < 0 // ended by the signal, not just before it
	}
}

// generateParts writes a chain that is large enough for kills to land in its
// middle, cut into files.
func generateParts(t *testing.T) (genesis string, parts []string) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "ashlar/bench/chaingen",
		"-blocks", "600", "-txs", "25", "-seed", "3", "-out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("bench/chaingen: %v\n%s", err, out)
	}
	chain, err := os.ReadFile(filepath.Join(dir, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	for len(chain) > 0 {
		rest := chain
		for n := 0; n < partBlock && len(rest) > 0; n++ {
			if _, _, rest, err = rlp.Split(rest); err != nil {
				t.Fatal(err)
			}
		}
		part := filepath.Join(dir, fmt.Sprintf("part-%02d.rlp", len(parts)))
		if err := os.WriteFile(part, chain[:len(chain)-len(rest)], 0o600); err != nil {
			t.Fatal(err)
		}
		parts, chain = append(parts, part), rest
	}
	return filepath.Join(dir, "genesis.json"), parts
}

// headAfterKill is the last block that a killed import kept. It is not known
// where not even the genesis was.
func headAfterKill(t *testing.T, s service) (head uint64, known bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), s.Bin, "status", "--data", s.Data, "--json").Output()
	if err != nil {
		return 0, false
	}
	var status struct {
		Networks []struct{ Head uint64 }
	}
	if err := json.Unmarshal(out, &status); err != nil || len(status.Networks) != 1 {
		t.Fatalf("ashlar status --json printed %q: %v", out, err)
	}
	return status.Networks[0].Head, true
}

// compareStores compares all rows of two data directories.
func compareStores(t *testing.T, a, b service) {
	t.Helper()
	storeA, storeB := openStore(t, a), openStore(t, b)
	rows := 0
	for _, table := range archive.Tables() {
		rows += compareTable(t, table, storeA, storeB)
	}
	if rows == 0 {
		t.Error("there are no rows")
	}
	for _, s := range []kv.Store{storeA, storeB} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d rows compared", rows)
}

func compareTable(t *testing.T, table *kv.Table, a, b kv.Store) (rows int) {
	nextB, stopB := iter.Pull2(b.Walk(t.Context(), table))
	defer stopB()
	for rowA, err := range a.Walk(t.Context(), table) {
		if err != nil {
			t.Fatal(err)
		}
		rowB, errB, more := nextB()
		if errB != nil {
			t.Fatal(errB)
		}
		if !more || !bytes.Equal(rowA.Partition, rowB.Partition) || rowA.Sort != rowB.Sort || !bytes.Equal(rowA.Value, rowB.Value) {
			t.Fatalf("table %s, row %d: undisturbed %s, after kills %s", table.Name, rows, show(rowA), show(rowB))
		}
		rows++
	}
	if rowB, err, more := nextB(); more {
		t.Fatalf("table %s has rows after kills that the undisturbed import lacks: %s, %v", table.Name, show(rowB), err)
	}
	return rows
}

func show(r kv.Row) string {
	return fmt.Sprintf("%x at %d: %d bytes %x", r.Partition, r.Sort, len(r.Value), r.Value[:min(len(r.Value), 64)])
}

// openStore opens the only store of a network below a data directory.
func openStore(t *testing.T, s service) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: networkFolder(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func networkFolder(t *testing.T, s service) string {
	t.Helper()
	folder := filepath.Join(s.Data, "networks", s.Network)
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}
