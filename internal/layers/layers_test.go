// Package layers holds the direction in which the packages of this module may
// import each other. It has no code, only tests that read the source.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floor is a top folder with the floors below that it may build on. Folders
// within one floor may import each other.
type floor struct {
	name  string
	knows []string
}

// house lists every floor, from the ground up: none knows one that is listed
// after it. execute and archive do not know each other: one runs blocks, one
// keeps them, and ingest and query bring them together.
func house() []floor {
	return []floor{
		{"kv", nil},
		{"jsonrpc", nil},
		{"limit", nil},
		{"chain", nil},
		{"source", []string{"jsonrpc", "chain"}},
		{"execute", []string{"chain"}},
		{"tip", []string{"kv", "chain"}},
		{"archive", []string{"kv", "chain"}},
		{"ingest", []string{"kv", "chain", "source", "execute", "tip", "archive"}},
		{"verify", []string{"kv", "chain", "archive"}},
		{"pool", []string{"chain"}},
		{"query", []string{"kv", "chain", "execute", "tip", "archive", "pool"}},
		{"api", []string{"jsonrpc", "chain", "execute", "archive", "pool", "query"}}, // archive: the rows that it writes out
		{"account", []string{"kv", "limit"}},
		{"dashboard", []string{"account"}},
		{"gateway", []string{"jsonrpc", "limit", "account"}},
		{"app", []string{"kv", "jsonrpc", "limit", "chain", "source", "execute", "tip", "archive", "ingest", "verify", "pool", "query", "api", "account", "dashboard", "gateway"}},
		{"cmd", []string{"chain", "account", "app"}},
		{"internal", []string{"kv", "archive"}}, // helpers of tests
		{"bench", []string{"kv", "jsonrpc", "chain", "source", "execute", "tip", "archive", "query", "api", "internal"}},
	}
}

// keeper is where a library may be known, so that another can take its place.
type keeper struct {
	library string
	folders []string
}

func keepers() []keeper {
	return []keeper{
		{"github.com/cockroachdb/pebble", []string{"kv/pebble"}},
		// The reference builder makes chains to check execute with, so it shares nothing with it.
		{"github.com/ethereum/go-ethereum/core/state", []string{"execute", "source/demo/reference"}},
		{"github.com/spf13/cobra", []string{"cmd"}},
		{"github.com/goccy/go-yaml", []string{"app"}},
		{"github.com/prometheus/client_golang", []string{"app"}},
		{"github.com/coder/websocket", []string{"gateway", "bench/follow"}},
		{"github.com/caddyserver/certmagic", []string{"gateway/certificate"}},
		{"github.com/alexedwards/scs", []string{"account/session", "dashboard"}},
		{"golang.org/x/crypto/argon2", []string{"account/password"}},
	}
}

// families are the folders' names of the kinds of chain, which know nothing of each other.
func families() [][]string { return [][]string{{"evm", "eth"}, {"rollup"}} }

// listed is what go list says of a package; tests' imports are not part of it.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
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

func floorOf(folder string) string { name, _, _ := strings.Cut(folder, "/"); return name }

func TestHouseIsOrdered(t *testing.T) {
	var below []string
	for _, f := range house() {
		for _, k := range f.knows {
			if !slices.Contains(below, k) {
				t.Errorf("%s knows %s, which is not a floor below it", f.name, k)
			}
		}
		below = append(below, f.name)
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		own := floorOf(p.ImportPath)
		i := slices.IndexFunc(house(), func(f floor) bool { return f.name == own })
		if i < 0 {
			t.Errorf("package %s is on no floor: give %s a place in this table", p.ImportPath, own)
			continue
		}
		for _, imported := range p.Imports {
			folder, ours := strings.CutPrefix(imported, "ashlar/")
			if to := floorOf(folder); ours && to != own && !slices.Contains(house()[i].knows, to) {
				t.Errorf("%s imports %s: %s may know only %v", p.ImportPath, folder, own, house()[i].knows)
			}
		}
	}
}

func TestLibrariesStayWithTheirKeepers(t *testing.T) {
	for _, p := range packages(t) {
		if floorOf(p.ImportPath) == "internal" || floorOf(p.ImportPath) == "bench" {
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

func TestFamiliesAreStrangers(t *testing.T) {
	family := func(folder string) int {
		return slices.IndexFunc(families(), func(names []string) bool {
			return slices.ContainsFunc(strings.Split(folder, "/"), func(part string) bool { return slices.Contains(names, part) })
		})
	}
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			folder, ours := strings.CutPrefix(imported, "ashlar/")
			if !ours || p.ImportPath == "app" {
				continue // app is where everyone meets
			}
			if a, b := family(p.ImportPath), family(folder); a >= 0 && b >= 0 && a != b {
				t.Errorf("%s imports %s: families of chains know nothing of each other", p.ImportPath, folder)
			}
		}
	}
}
