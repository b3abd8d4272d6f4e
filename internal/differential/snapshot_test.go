package differential

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/internal/vectors"
)

// TestSnapshot makes snapshots next to a running server, and begins networks with them. The
// processes are killed at every request, or at random. Every answer about the snapshot's
// blocks and the ones after them must be that of an Ashlar that has executed the whole chain.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	generated := generateChain(t, 400, 8)
	for _, c := range []struct {
		name, folder string
		first, last  uint64
	}{
		{"generated", generated, 300, 350},
		{"generated, the state alone", generated, 380, 380},
		{"made by hive", vectors.Path(t, "chains", "sync-3000"), 2900, 2950},
	} {
		t.Run(c.name, func(t *testing.T) {
			genesis, file := filepath.Join(c.folder, "genesis.json"), filepath.Join(c.folder, "chain.rlp")
			chain, err := sample.Read(genesis, file)
			if err != nil {
				t.Fatal(err)
			}
			whole := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: callGasConfig(t)}
			p, err := whole.Import(t.Context(), genesis, file)
			awaitImport(t, p, err)
			p, asked, err := whole.Serve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			if err := chain.Learn(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			snapshot := createSnapshot(t, whole, c.first, c.last)
			part := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: whole.Config}
			loadSnapshot(t, part, genesis, snapshot, chain.Blocks[c.last].Hash.Hex())
			_, after := splitChain(t, file, c.last)
			p, err = part.Import(t.Context(), genesis, after)
			awaitImport(t, p, err)
			if out, err := part.Verify(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			p, answers, err := part.Serve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			compareFrom(t, chain, asked, answers, c.first)
		})
	}
}

// createSnapshot makes the same snapshot twice, once with kills, and returns its folder.
func createSnapshot(t *testing.T, of node.Ashlar, first, last uint64) (folder string) {
	t.Helper()
	t.Logf("seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, first))
	folder, killed := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	p, err := of.CreateSnapshot(t.Context(), folder, first, last)
	awaitImport(t, p, err)
	for range 3 {
		p, err := of.CreateSnapshot(t.Context(), killed, first, last)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		p.Kill()
	}
	if _, err := os.Stat(filepath.Join(killed, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
		p, err := of.CreateSnapshot(t.Context(), killed, first, last)
		awaitImport(t, p, err)
	}
	want, got := folderContents(t, folder), folderContents(t, killed)
	if len(want) != len(got) {
		t.Errorf("%d files after kills, want %d", len(got), len(want))
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s is another after kills", name)
		}
	}
	return folder
}

func folderContents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

// loadSnapshot loads a snapshot from a web server. The process is killed at the first request,
// the next one at the second, and so on.
func loadSnapshot(t *testing.T, into node.Ashlar, genesis, folder, block string) {
	t.Helper()
	var left atomic.Int64
	reached := make(chan struct{}, 1)
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) == 0 {
			reached <- struct{}{}
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	for at := int64(1); ; at++ {
		left.Store(at)
		p, err := into.LoadSnapshot(t.Context(), genesis, server.URL, block)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-reached:
			p.Kill()
		case <-p.Done():
			awaitImport(t, p, nil)
			t.Logf("killed %d times", at-1)
			return
		}
	}
}
