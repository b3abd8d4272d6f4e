// Package layers holds the direction in which the packages of this module may
// import each other. It has no code, only tests that read the source.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A layer is a folder, with all below it that have no layer of their own, and the
// layers that its packages may import. Packages of one layer may import each other.
type layer struct {
	folder  string
	imports []string
}

// shared lists the layers that every family builds on, from the bottom up. They know
// no family.
func shared() []layer {
	return []layer{
		{"kv", nil},
		{"jsonrpc", nil},
		{"limit", nil},
		{"chain", nil},
		{"endpoint", nil},
		{"strictjson", nil},
		{"history", []string{"kv", "chain"}},
		{"feed", []string{"jsonrpc", "limit"}},
		{"events", []string{"jsonrpc", "history"}},
		{"account", []string{"kv", "limit"}},
		{"family", []string{"kv", "jsonrpc", "endpoint", "history", "feed"}},
	}
}

// family lists the layers of a family of chains, from the bottom up; "." is the
// family's own folder, which holds its nouns. Both families have the same layers. One
// that a family does without (Starknet blocks are not executed) is absent.
func family(name string) []layer {
	in := func(folders ...string) (paths []string) {
		for _, folder := range folders {
			paths = append(paths, path.Join(name, folder))
		}
		return paths
	}
	layers := []layer{
		{".", []string{"chain", "strictjson"}},
		{"era", in(".")},
		{"source", append(in(".", "era"), "jsonrpc", "chain", "endpoint", "strictjson")},
		{"execute", in(".")},
		{"archive", append(in("."), "kv", "chain", "history")},
		{"export", in(".", "era", "archive")},
		{"ingest", append(in(".", "source", "execute", "archive"), "kv", "chain", "history")},
		{"verify", append(in(".", "archive"), "kv", "chain", "history")},
		{"pool", in(".")},
		{"trace", in(".", "execute")},
		{"query", append(in(".", "execute", "archive", "pool"), "kv", "chain", "history")},
		{"api", append(in(".", "execute", "archive", "pool", "trace", "query"), "jsonrpc", "limit", "chain", "history", "feed", "events")},
		{"network", append(in(".", "source", "execute", "archive", "ingest", "verify", "pool", "query", "api"),
			"family", "kv", "jsonrpc", "chain", "history")},
	}
	for i := range layers {
		layers[i].folder = path.Join(name, layers[i].folder)
	}
	return layers
}

// families are the folders of the families of chains, which know nothing of each other.
func families() []string { return []string{"evm", "starknet"} }

// layers lists every layer, from the bottom up: none imports one that is listed after it.
func layers() []layer {
	all := shared()
	for _, name := range families() {
		all = append(all, family(name)...)
	}
	return append(all,
		layer{"dashboard", []string{"account"}},
		layer{"gateway", []string{"jsonrpc", "limit", "account"}},
		layer{"app/store", []string{"kv", "gateway"}},
		layer{"app/config", []string{"family", "gateway", "account", "feed", "jsonrpc"}},
		layer{"app", []string{everything}},
		layer{"app/command", []string{"app", "app/config", "app/store", "family", "gateway", "account", "history", "kv"}},
		layer{"cmd", []string{"account", "app", "app/command", "app/config", "family"}},
		layer{"internal", []string{everything}}, // tools of tests
		layer{"bench", []string{everything}},
	)
}

// everything, as an import of a layer, is every layer below it.
const everything = "*"

// layerOf returns the layer of a package: that of the longest folder it lies in.
func layerOf(pkg string) (found layer, ok bool) {
	for _, l := range layers() {
		if within(pkg, l.folder) && len(l.folder) >= len(found.folder) {
			found, ok = l, true
		}
	}
	return found, ok
}

// keeper is where a library may be known, so that another can take its place.
type keeper struct {
	library string
	folders []string
}

func keepers() []keeper {
	all := []keeper{
		{"github.com/cockroachdb/pebble", []string{"kv/pebble"}},
		// Everything else takes a kv.Store, whichever engine it is.
		{"ashlar/kv/pebble", []string{"kv/pebble", "app/store", "evm/ingest/ingesttest"}},
		// The reference builder makes chains to check execute with, so it shares nothing with it.
		{"github.com/ethereum/go-ethereum/core/state", []string{"evm/execute", "evm/source/demo/reference"}},
		{"github.com/spf13/cobra", []string{"cmd"}},
		{"github.com/goccy/go-yaml", []string{"app/config"}},
		{"github.com/prometheus/client_golang", []string{"app"}},
		{"github.com/coder/websocket", []string{"gateway", "bench/follow"}},
		{"github.com/caddyserver/certmagic", []string{"gateway/certificate"}},
		{"github.com/alexedwards/scs", []string{"account/session", "dashboard"}},
		{"golang.org/x/crypto/argon2", []string{"account/password"}},
		{"github.com/go-json-experiment/json", []string{"strictjson"}},
		{"github.com/cenkalti/backoff", []string{"evm/ingest/upstream", "starknet/source/node"}},
		{"github.com/golang-jwt/jwt", []string{"evm/source/engine", "internal/node"}},
	}
	for _, name := range families() { // app registers them, everything else asks the interface
		all = append(all, keeper{path.Join("ashlar", name, "network"), []string{"app"}})
	}
	return all
}

// listed is what go list says of a package; tests' imports are not part of it.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	readFolders(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "ashlar/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, "ashlar/")
		all = append(all, p)
	}
}

// readFolders reads the folders of the module, so that go test knows what the result
// depends on: it does not see what go list reads, and would return an old result.
func readFolders(t *testing.T) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLayersAreOrdered(t *testing.T) {
	below := []string{everything}
	for _, l := range layers() {
		for _, name := range l.imports {
			if !slices.Contains(below, name) {
				t.Errorf("%s may import %s, which is not a layer below it", l.folder, name)
			}
		}
		below = append(below, l.folder)
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		own, ok := layerOf(p.ImportPath)
		if !ok {
			t.Errorf("package %s has no layer: add its folder to the table", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			folder, ours := strings.CutPrefix(imported, "ashlar/")
			if !ours {
				continue
			}
			to, _ := layerOf(folder)
			if to.folder != own.folder && !slices.Contains(own.imports, to.folder) && !slices.Contains(own.imports, everything) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, folder, own.folder, own.imports)
			}
		}
	}
}

func TestLibrariesStayWithTheirKeepers(t *testing.T) {
	for _, p := range packages(t) {
		if within(p.ImportPath, "internal") || within(p.ImportPath, "bench") {
			continue // tools compare the service with the libraries themselves
		}
		for _, imported := range p.Imports {
			for _, k := range keepers() {
				allowed := slices.ContainsFunc(k.folders, func(folder string) bool { return within(p.ImportPath, folder) })
				if within(imported, k.library) && !allowed {
					t.Errorf("%s imports %s, which only %v may know", p.ImportPath, imported, k.folders)
				}
			}
		}
	}
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// TestNoRollupFolder: Starknet is one rollup of many, so no folder has that name.
func TestNoRollupFolder(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(strings.Split(p.ImportPath, "/"), "rollup") {
			t.Errorf("package %s: expected the name of a family", p.ImportPath)
		}
	}
}
