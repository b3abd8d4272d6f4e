// Package layers tests which packages of this module import each other. It contains only tests, which
// read the source.
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

// A layer is a folder, including subfolders that are not layers themselves, and the layers that its
// packages may import. Packages of one layer may import each other.
type layer struct {
	folder  string
	imports []string
}

// shared returns the layers on which all families are based, lowest first. They know no family.
func shared() []layer {
	return []layer{
		{"kv", nil},
		{"typo", nil},
		{"jsonrpc", []string{"typo"}},
		{"limit", nil},
		{"chain", nil},
		{"parameter", []string{"jsonrpc", "chain"}},
		{"endpoint", nil},
		{"filelock", nil},
		{"strictjson", nil},
		{"retry", nil},
		{"upstream", []string{"limit", "chain", "endpoint"}},
		{"worker", []string{"limit"}},
		{"history", []string{"kv", "chain"}},
		{"feed", []string{"jsonrpc", "parameter", "limit"}},
		{"events", []string{"jsonrpc", "history"}},
		{"eth", []string{"jsonrpc", "parameter", "chain", "feed"}},
		{"account", []string{"kv", "limit", "retry", "filelock"}},
		{"family", []string{"kv", "jsonrpc", "chain", "endpoint", "history", "feed", "worker", "upstream"}},
	}
}

// family returns the layers of a chain family, lowest first; "." is the family's own folder, with its
// data types. All families have the same layers, except for those a family does not need: Starknet
// blocks are not executed.
func family(name string) []layer {
	in := func(folders ...string) (paths []string) {
		for _, folder := range folders {
			paths = append(paths, path.Join(name, folder))
		}
		return paths
	}
	layers := []layer{
		{"keccak", nil},
		{".", []string{"chain", "strictjson"}},
		{"era", in(".")},
		{"source", append(in(".", "era"), "jsonrpc", "chain", "endpoint", "strictjson", "retry", "limit")},
		{"merkle", in(".")},
		{"execute", in("keccak", ".")},
		{"archive", append(in("keccak", "."), "kv", "chain", "history", "retry")},
		{"proven", append(in("keccak", ".", "merkle", "source", "archive"), "limit", "upstream", "kv", "chain", "history")},
		{"export", in(".", "era", "archive")},
		{"snapshot", append(in(".", "execute", "archive", "export"), "chain", "endpoint", "filelock")},
		{"ingest", append(in(".", "source", "execute", "archive"), "kv", "chain", "history", "retry", "upstream")},
		{"verify", append(in(".", "execute", "archive"), "kv", "chain", "history")},
		{"pool", in(".")},
		{"trace", append(in(".", "execute"), "worker")},
		{"query", append(in(".", "merkle", "execute", "archive", "ingest", "proven", "pool"), "kv", "jsonrpc", "limit", "chain", "history", "upstream")},
		{"api", append(in("keccak", ".", "execute", "archive", "pool", "trace", "query"), "jsonrpc", "parameter", "limit", "chain", "history", "feed", "events", "eth", "worker", "upstream")},
		{"network", append(in(".", "era", "source", "execute", "archive", "export", "snapshot", "ingest", "verify", "pool", "proven", "query", "api"),
			"family", "kv", "jsonrpc", "chain", "history", "retry", "upstream")},
	}
	for i := range layers {
		layers[i].folder = path.Join(name, layers[i].folder)
	}
	return layers
}

// families returns the folders of the chain families, which do not know each other.
func families() []string { return []string{"evm", "starknet", "forwarded"} }

// layers returns all layers, lowest first: none imports a later one.
func layers() []layer {
	all := shared()
	for _, name := range families() {
		all = append(all, family(name)...)
	}
	return append(all,
		layer{"dashboard", []string{"account", "jsonrpc"}},
		layer{"gateway", []string{"jsonrpc", "limit", "account"}},
		layer{"app/backup", nil},
		layer{"app/store", []string{"typo", "retry", "kv", "gateway"}},
		layer{"docs", nil},
		layer{"app/config", []string{"docs", "typo", "app/store", "family", "gateway", "account", "feed", "jsonrpc", "history"}},
		layer{"app/watch", []string{"gateway"}},
		layer{"app/recent", nil},
		layer{"app", []string{everything}},
		layer{"app/command", []string{"app", "app/backup", "app/config", "app/store", "family", "gateway", "account", "history", "kv"}},
		layer{"cmd", []string{"typo", "account", "app", "app/command", "app/config", "app/recent", "family"}},
		layer{"internal", []string{everything}}, // test tools
		layer{"bench", []string{everything}},
	)
}

// everything stands for all lower layers in the imports of a layer.
const everything = "*"

// layerOf returns the layer of a package: the one with the longest matching folder.
func layerOf(pkg string) (found layer, ok bool) {
	for _, l := range layers() {
		if within(pkg, l.folder) && len(l.folder) >= len(found.folder) {
			found, ok = l, true
		}
	}
	return found, ok
}

// keeper lists the only folders that may import a library, so that it can be replaced.
type keeper struct {
	library string
	folders []string
}

func keepers() []keeper {
	all := []keeper{
		{"github.com/cockroachdb/pebble", []string{"kv/pebble"}},
		{"github.com/apache/cassandra-gocql-driver", []string{"kv/cassandra"}},
		// Everything else takes a kv.Store, whichever engine it is.
		{"ashlar/kv/pebble", []string{"kv/pebble", "app/store", "evm/ingest/ingesttest", "internal/familytest"}},
		{"ashlar/kv/cassandra", []string{"kv/cassandra", "app/store"}},
		{"ashlar/kv/rowcache", []string{"kv/rowcache", "app/store"}},
		// The reference builder generates chains to test execute, so it must be independent of it.
		{"github.com/ethereum/go-ethereum/core/state", []string{"evm/execute", "evm/source/demo/reference"}},
		{"github.com/spf13/cobra", []string{"cmd"}},
		{"github.com/goccy/go-yaml", []string{"app/config"}},
		{"github.com/prometheus/client_golang", []string{"app"}},
		{"github.com/coder/websocket", []string{"gateway"}},
		{"github.com/caddyserver/certmagic", []string{"gateway/certificate"}},
		{"github.com/alexedwards/scs", []string{"account/session", "account/accounttest", "dashboard"}},
		{"github.com/pquerna/otp", []string{"account/totp"}},
		{"github.com/coreos/go-oidc", []string{"account/oidc"}},
		{"golang.org/x/oauth2", []string{"account/oidc"}},
		{"github.com/boombuler/barcode", []string{"dashboard/profile"}},
		{"golang.org/x/crypto/argon2", []string{"account/password"}},
		{"github.com/elastic/go-seccomp-bpf", []string{"worker"}},
		{"github.com/wneessen/go-mail", []string{"account/mail"}},
		{"github.com/emersion/go-smtp", []string{"account/mail/mailtest"}},
		{"github.com/go-json-experiment/json", []string{"strictjson"}},
		{"github.com/cenkalti/backoff", []string{"evm/ingest/older", "evm/ingest/upstream", "starknet/source/node", "retry"}},
		{"github.com/minio/minio-go", []string{"app/backup"}},
		{"go.opentelemetry.io/otel", []string{"app/watch"}},
		{"github.com/consensys/gnark-crypto/ecc/bls12-381", []string{"evm/source/beacon/bls", "evm/execute/precompiled"}}, // signatures; contracts
		{"github.com/golang-jwt/jwt", []string{"evm/source/engine"}},
	}
	for _, name := range families() { // app registers them, everything else asks the interface
		all = append(all, keeper{path.Join("ashlar", name, "network"), []string{"app"}})
	}
	return all
}

// listed is the output of go list for a package. It does not include the imports of tests.
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
				t.Errorf("%s may import %s, which is not a lower layer", l.folder, name)
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
			continue // test tools compare the service with the libraries
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

// TestNoRollupFolder: Starknet is only one of many rollups, so no folder has that name.
func TestNoRollupFolder(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(strings.Split(p.ImportPath, "/"), "rollup") {
			t.Errorf("package %s: expected the name of a family", p.ImportPath)
		}
	}
}
