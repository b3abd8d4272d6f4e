package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/kv"
)

func makeStore(t *testing.T, data store.Dir, network string) {
	t.Helper()
	opened, err := data.OpenNetwork(network, kv.Options{})
	if err == nil {
		err = opened.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAliasOfNetwork: a link to the directory of another network does not open, whichever of the two is opened
// first. Both would write to one store, and lose each other's rows.
func TestAliasOfNetwork(t *testing.T) {
	for what, test := range map[string]struct {
		target       string // of both, "" for the directory of the network
		alias, owner string
	}{
		"a link before the directory": {alias: "a", owner: "small"},
		"a link after the directory":  {alias: "z", owner: "small"},
		"two links":                   {target: filepath.Join(t.TempDir(), "large"), alias: "two", owner: "one"},
	} {
		t.Run(what, func(t *testing.T) {
			data := store.Dir(t.TempDir())
			makeStore(t, data, test.owner)
			target := test.owner // relative to the link
			if test.target != "" {
				target = test.target
				if err := errors.Join(os.Rename(data.Network(test.owner), target), os.Symlink(target, data.Network(test.owner))); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, data.Network(test.alias)); err != nil {
				t.Fatal(err)
			}
			refused := func() {
				t.Helper()
				want := data.Network(test.alias) + " is the directory of the network " + test.owner + ", too"
				_, err := data.OpenNetwork(test.alias, kv.Options{})
				if err == nil || !strings.Contains(err.Error(), want) || kv.IsDamage(err) {
					t.Errorf("opening the alias: %v, want %q, and no damage", err, want)
				}
				if _, err = data.OpenToCopy(t.Context(), store.NetworkStore(test.alias)); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("opening the alias to copy it: %v, want %q", err, want)
				}
			}
			refused()
			// The store is another network's: nobody must be told to remove it.
			if err := data.Remove(test.alias); err == nil || !strings.HasSuffix(err.Error(), "the directory of the network "+test.owner+", too: remove the link alone") {
				t.Errorf("removing the alias: %v", err)
			}
			opened, err := data.OpenNetwork(test.owner, kv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			refused()
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
			if names, err := data.Names(); err != nil || !slices.Contains(names, test.alias) || len(names) != 2 {
				t.Errorf("the networks are %q, %v, expected both", names, err)
			}
		})
	}
}

// TestOpenTwiceByOtherPath: a store that is open is in use, by whichever path the same process names it again.
// The lock of a process on a file does not exclude the process itself.
func TestOpenTwiceByOtherPath(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if err := errors.Join(os.Mkdir("data", 0o700), os.Symlink("data", "link")); err != nil {
		t.Fatal(err)
	}
	paths := []store.Dir{"data", "link", store.Dir(filepath.Join(root, "data")), store.Dir(filepath.Join(root, "link"))}
	for i, first := range paths {
		for _, exists := range []bool{false, true} {
			if !exists {
				if err := os.RemoveAll(filepath.Join("data", "networks")); err != nil {
					t.Fatal(err)
				}
			}
			opened, err := first.OpenNetwork("small", kv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, second := range slices.Concat(paths[i:], paths[:i]) {
				again, err := second.OpenNetwork("small", kv.Options{})
				if !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), "held by this process") {
					t.Errorf("%s open, which existed: %t, then opened as %s: %v, expected in use by this process", first, exists, second, err)
				}
				if err == nil {
					_ = again.Close()
				}
				if unlock, err := second.Lock([]string{store.NetworkStore("small")}); !errors.Is(err, kv.ErrInUse) {
					t.Errorf("%s open, then locked as %s: %v, expected in use", first, second, err)
					if err == nil {
						_ = unlock()
					}
				}
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNetworkBehindLoop: a link that cannot be followed is like one to a disk that is not mounted.
func TestNetworkBehindLoop(t *testing.T) {
	data := store.Dir(t.TempDir())
	makeStore(t, data, "small")
	if err := os.Symlink("loop", data.Network("loop")); err != nil {
		t.Fatal(err)
	}
	_, err := data.OpenNetwork("loop", kv.Options{})
	if err == nil || !strings.Contains(err.Error(), data.Network("loop")+" is a symbolic link to loop, which cannot be reached: too many levels") || kv.IsDamage(err) {
		t.Errorf("opening it: %v", err)
	}
	if _, err := data.Bytes("loop"); err == nil || !strings.Contains(err.Error(), "network loop: ") {
		t.Errorf("its size: %v, expected an error with its name", err)
	}
}

// TestContains: a directory inside of a store is inside of the data directory, wherever the store is.
func TestContains(t *testing.T) {
	data, large := linked(t)
	accounts := filepath.Join(t.TempDir(), "accounts")
	if err := errors.Join(os.Mkdir(accounts, 0o700), os.Symlink(accounts, filepath.Join(string(data), "accounts"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct{ contains, among bool }{
		string(data):                               {true, false},
		filepath.Join(string(data), "backup"):      {true, false},
		filepath.Join(data.Network("new"), "deep"): {true, true},
		large:                                   {true, true},
		filepath.Join(large, "backup", "new"):   {true, true},
		filepath.Join(accounts, "backup"):       {true, false},
		filepath.Join(filepath.Dir(large), "x"): {false, false},
		t.TempDir():                             {false, false},
	} {
		if got := data.Contains(path); got != want.contains {
			t.Errorf("%s is inside of the data directory: %t", path, got)
		}
		if got := data.AmongNetworks(path); got != want.among {
			t.Errorf("%s is where networks are: %t", path, got)
		}
	}
}
