package crashes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/kv/pebble"

	"github.com/ethereum/go-ethereum/rlp"
)

const (
	kills      = 20 // in a usual run
	wholeKills = 300
	killSeed   = 4
	fileBlocks = 15 // in each of the chain's files
)

// TestKill kills imports, as processes, at random moments, and resumes each until it completes. Then it
// compares the store with that of an undisturbed import, and begins a new one, until the number of
// kills is reached.
//
// The chain consists of many files: at the end of each, the import reports what is durable.
func TestKill(t *testing.T) {
	t.Parallel()
	export := generateExport(t)
	bin := build(t)
	undisturbed := newNetwork(t, bin)
	whole := undisturbed.mustImport(t, export)
	want := undisturbed.contents(t)

	wanted := killsOf(kills, wholeKills)
	random := rand.New(rand.NewPCG(killSeed, 0))
	disturbed := newNetwork(t, bin)
	var landed, midway, completed int
	life := whole // of an import at most, unless it completes
	// On a busy machine few kills hit an import.
	for landed < wanted || midway == 0 && landed < 5*wanted {
		p, err := disturbed.Import(t.Context(), export.genesis, export.files...)
		if err != nil {
			t.Fatal(err)
		}
		if killAfter(p, time.Duration(random.Int64N(int64(life)))) {
			landed++
			if disturbed.checkKept(t, p.Output()) > 0 {
				midway++
			} else {
				life = min(life+life/4, 10*whole) // on a busy machine an import may begin later
			}
			continue
		}
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := want.differ(disturbed.contents(t)); err != nil {
			t.Errorf("after %d kills of seed %d: %v", landed, killSeed, err)
		}
		completed, life = completed+1, whole
		disturbed = newNetwork(t, bin)
	}
	if midway == 0 {
		t.Errorf("none of %d kills left an import that could be resumed above the genesis", landed)
	}
	disturbed.mustImport(t, export)
	if err := want.differ(disturbed.contents(t)); err != nil {
		t.Error(err)
	}
	t.Logf("%d kills, %d of them above the genesis, in %d imports that were then completed; %d rows compared after each",
		landed, midway, completed+1, want.rows())
}

// killAfter kills the process after a while, and reports whether it was still running.
func killAfter(p *node.Process, wait time.Duration) bool {
	select {
	case <-p.Done():
		return false
	case <-time.After(wait):
		p.Kill()
		return p.ExitCode() < 0 // ended by the signal, and not just before it
	}
}

// export is a chain in files.
type export struct {
	genesis string
	files   []string
}

// generateExport generates a chain that is large enough for kills during its import.
func generateExport(t *testing.T) (e export) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "ashlar/bench/chaingen",
		"-blocks", "240", "-txs", "15", "-seed", "3", "-out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("bench/chaingen: %v\n%s", err, out)
	}
	left, err := os.ReadFile(filepath.Join(dir, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	for len(left) > 0 {
		rest := left
		for n := 0; n < fileBlocks && len(rest) > 0; n++ {
			if _, _, rest, err = rlp.Split(rest); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("part-%02d.rlp", len(e.files)))
		if err := os.WriteFile(file, left[:len(left)-len(rest)], 0o600); err != nil {
			t.Fatal(err)
		}
		e.files, left = append(e.files, file), rest
	}
	e.genesis = filepath.Join(dir, "genesis.json")
	return e
}

// build compiles the service.
func build(t *testing.T) string {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// network is the service with one network in a data directory.
type network struct{ node.Ashlar }

func newNetwork(t *testing.T, bin string) network {
	t.Helper()
	return network{node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test"}}
}

func (n network) mustImport(t *testing.T, e export) time.Duration {
	t.Helper()
	p, err := n.Import(t.Context(), e.genesis, e.files...)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return usage.Wall
}

// contents returns the contents of the network's store, which no process may have open.
func (n network) contents(t *testing.T) contents {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: filepath.Join(n.Data, "networks", n.Network)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := contentsOf(t.Context(), store)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

var keptSaid = regexp.MustCompile(`kept=(\d+)`)

// checkKept returns the head of a network after an interrupted import, 0 if there is none. It must not
// be below the head that the import reported as durable.
func (n network) checkKept(t *testing.T, output string) uint64 {
	t.Helper()
	head, err := n.head(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, said := range keptSaid.FindAllStringSubmatch(output, -1) {
		if kept, err := strconv.ParseUint(said[1], 10, 64); err != nil || kept > head {
			t.Errorf("the head is %d, the import reported %s: %v", head, said[0], err)
		}
	}
	return head
}

// head runs ashlar status.
func (n network) head(ctx context.Context) (uint64, error) {
	out, err := exec.CommandContext(ctx, n.Bin, "status", "--data", n.Data, "--json").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return 0, fmt.Errorf("ashlar status after a crash: %w", err)
	}
	var status struct{ Networks []struct{ Head uint64 } }
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("ashlar status printed %q: %w", out, err)
	}
	if len(status.Networks) == 0 {
		return 0, nil
	}
	return status.Networks[0].Head, nil
}
