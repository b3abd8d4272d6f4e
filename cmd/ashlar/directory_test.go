package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/evm/genesis"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/ethereum/go-ethereum/rlp"
)

// tinyChain is a genesis file and an export that holds its block alone. Chains of
// other seeds are others.
func tinyChain(t *testing.T, seed string) (genesisFile, chainFile string) {
	t.Helper()
	dir := t.TempDir()
	genesisFile, chainFile = filepath.Join(dir, "genesis.json"), filepath.Join(dir, "chain.rlp")
	text := `{"config": {"chainId": 7}, "difficulty": "1", "gasLimit": "1000000", "extraData": "0x` + seed + `", "alloc": {}}`
	if err := os.WriteFile(genesisFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first, _, err := genesis.Load(genesisFile)
	if err != nil {
		t.Fatal(err)
	}
	block, err := rlp.EncodeToBytes(first.ToBlock())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(chainFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return genesisFile, chainFile
}

// dataDirectory is a data directory with the network "a" and an API key.
type dataDirectory struct {
	path, genesis, chain, otherGenesis string
}

func newDataDirectory(t *testing.T) dataDirectory {
	t.Helper()
	d := dataDirectory{path: filepath.Join(t.TempDir(), "data")}
	d.genesis, d.chain = tinyChain(t, "01")
	d.otherGenesis, _ = tinyChain(t, "02")
	for _, args := range [][]string{d.importing(d.genesis), d.key("create")} {
		if code, out := runCommand(t, args...); code != exitDone {
			t.Fatalf("%v: exit code %d\n%s", args, code, out)
		}
	}
	return d
}

func (d dataDirectory) network() string  { return filepath.Join(d.path, "networks", "a") }
func (d dataDirectory) accounts() string { return filepath.Join(d.path, "accounts") }

func (d dataDirectory) importing(genesis string) []string {
	return []string{"import", "--data", d.path, "--network", "a", "--genesis", genesis, d.chain}
}
func (d dataDirectory) goingOn() []string {
	return []string{"import", "--data", d.path, "--network", "a", d.chain}
}
func (d dataDirectory) serve() []string {
	return []string{"serve", "--data", d.path, "--listen", "127.0.0.1:0"}
}
func (d dataDirectory) status() []string { return []string{"status", "--data", d.path} }
func (d dataDirectory) verify() []string {
	return []string{"verify", "--data", d.path, "--network", "a"}
}
func (d dataDirectory) rewind() []string {
	return []string{"rewind", "--data", d.path, "--network", "a", "--to", "5"}
}
func (d dataDirectory) prune() []string {
	return []string{"prune", "--data", d.path, "--network", "a", "--proofs", "5"}
}
func (d dataDirectory) demo() []string {
	return []string{"demo", "--data", d.path, "--listen", "127.0.0.1:0"}
}
func (d dataDirectory) key(args ...string) []string {
	return append([]string{"key"}, append(args, "--data", d.path)...)
}

// TestRefusedDirectory gives the commands a directory that they must not touch:
// they say what is wrong with it, and every file of it stays as it was.
func TestRefusedDirectory(t *testing.T) {
	for _, test := range []struct {
		name     string
		make     func(t *testing.T, d dataDirectory)
		refused  func(d dataDirectory) string // the directory
		commands func(d dataDirectory) [][]string
		words    []string
	}{
		{"network of a newer format",
			func(t *testing.T, d dataDirectory) { setFormat(t, d.network(), "ashlar-evm-5") },
			dataDirectory.network, networkCommands,
			[]string{"network a", `"ashlar-evm-5"`, `this version reads "ashlar-evm-3", "ashlar-evm-3+traces", "ashlar-evm-4", "ashlar-evm-4+traces", "ashlar-evm-4+traces+changes"`}},
		{"network in a newer format of the engine",
			func(t *testing.T, d dataDirectory) {
				marker := filepath.Join(d.network(), "marker.format-version.000011.")
				if err := os.Rename(marker+"024", marker+"999"); err != nil {
					t.Fatal(err)
				}
			},
			dataDirectory.network, networkCommands, []string{"network a", "unknown format major version 999"}},
		{"network of another chain", nil, dataDirectory.network,
			func(d dataDirectory) [][]string { return [][]string{d.importing(d.otherGenesis)} },
			[]string{"network a", "holds another chain: its genesis is 0x", "expected 0x", "want the genesis with which the network was created"}},
		{"API keys in the place of a network",
			func(t *testing.T, d dataDirectory) {
				if err := os.RemoveAll(d.network()); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(d.network(), os.DirFS(d.accounts())); err != nil {
					t.Fatal(err)
				}
			},
			dataDirectory.network, networkCommands, []string{"network a", `"ashlar-accounts-1"`}},
		{"something else in the place of a network",
			func(t *testing.T, d dataDirectory) { write(t, filepath.Join(d.network(), "letter.txt"), "Dear reader") },
			dataDirectory.network, networkCommands, []string{"network a", "letter.txt", "not an ashlar store"}},
		{"API keys of a newer format",
			func(t *testing.T, d dataDirectory) { setFormat(t, d.accounts(), "ashlar-accounts-2") },
			dataDirectory.accounts, keyCommands, []string{"accounts", `"ashlar-accounts-2"`, `this version reads "ashlar-accounts-1"`}},
		{"something else in the place of API keys",
			func(t *testing.T, d dataDirectory) {
				write(t, filepath.Join(d.accounts(), "letter.txt"), "Dear reader")
			},
			dataDirectory.accounts, keyCommands, []string{"accounts", "letter.txt", "not an ashlar store"}},
		{"something else altogether",
			func(t *testing.T, d dataDirectory) {
				if err := os.RemoveAll(d.path); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(d.path, "letters", "1.txt"), "Dear reader")
			},
			func(d dataDirectory) string { return d.path },
			func(d dataDirectory) [][]string {
				return append(append([][]string{d.demo()}, networkCommands(d)...), keyCommands(d)...)
			},
			[]string{"is not a data directory", `"letters"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDataDirectory(t)
			if test.make != nil {
				test.make(t, d)
			}
			before := files(t, test.refused(d))
			for _, args := range test.commands(d) {
				code, out := runCommand(t, args...)
				if code != exitFailed {
					t.Errorf("%v: exit code %d, expected %d", args, code, exitFailed)
				}
				for _, word := range test.words {
					if !strings.Contains(out, word) {
						t.Errorf("%v does not say %q:\n%s", args, word, out)
					}
				}
				if after := files(t, test.refused(d)); !maps.Equal(before, after) {
					t.Errorf("%v has changed the directory: %v before, %v after", args, names(before), names(after))
				}
			}
		})
	}
}

// TestMisspeltDirectory: only what brings something in makes a data directory.
func TestMisspeltDirectory(t *testing.T) {
	d := dataDirectory{path: filepath.Join(t.TempDir(), "data")}
	for _, args := range [][]string{
		d.serve(), d.status(), d.verify(), d.key("create"), d.key("list"), d.key("usage"),
		{"account", "create", "somebody@example.org", "--data", d.path}, {"account", "list", "--data", d.path},
	} {
		code, out := runCommand(t, args...)
		if code != exitFailed || !strings.Contains(out, d.path+": no such directory") {
			t.Errorf("%v: exit code %d, expected %d and that there is no such directory:\n%s", args, code, exitFailed, out)
		}
		if _, err := os.Stat(d.path); err == nil {
			t.Fatalf("%v has made the directory", args)
		}
	}
}

// A genesis without a time of its own, as mainnet's, has none in the table of what is held.
func TestStatusOfGenesis(t *testing.T) {
	d := newDataDirectory(t)
	code, out := runCommand(t, d.status()...)
	table := regexp.MustCompile(`^NETWORK  FAMILY  CHAIN ID  HEAD  HEAD TIME  AGE  UPSTREAMS  DISK\na +evm +7 +0 +- +- +- +\S+ MiB\nno server answers; this is what the stores hold\n$`)
	if code != exitDone || !table.MatchString(out) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestOtherFamily: blocks of one family are not brought into a network of the other.
func TestOtherFamily(t *testing.T) {
	d := newDataDirectory(t)
	starknet := func(network string) []string {
		return []string{"import", "--data", d.path, "--network", network, "--family", "starknet", d.chain}
	}
	evm := func(more ...string) []string {
		return append([]string{"import", "--data", d.path, "--network", "r", d.chain}, more...)
	}
	makeStarknet(t, d.path, "r")
	for _, test := range []struct {
		args []string
		want string
	}{
		{starknet("a"), "it is of family evm, and blocks of family starknet cannot"},
		{evm(), "it is of family starknet, and blocks of family evm cannot"},
		{evm("--genesis", d.genesis), "it is of family starknet, and blocks of family evm cannot"},
	} {
		if code, out := runCommand(t, test.args...); code != exitFailed || !strings.Contains(out, test.want) {
			t.Errorf("%v: exit code %d, expected %d and %q:\n%s", test.args, code, exitFailed, test.want, out)
		}
	}
	empty, err := store.Dir(d.path).OpenNetwork("empty", kv.Options{})
	if err == nil {
		err = empty.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out := runCommand(t, d.status()...); code != exitDone || !strings.Contains(out, "import them again, for an EVM network with its genesis") {
		t.Errorf("an empty network: exit code %d\n%s", code, out)
	}
}

// makeStarknet makes a Starknet network of one block.
func makeStarknet(t *testing.T, data, name string) {
	t.Helper()
	f, err := app.Families().Named("starknet")
	if err != nil {
		t.Fatal(err)
	}
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	place, err := app.Place(t.Context(), store.Dir(data), f, name)
	if err == nil {
		err = demo.Create(t.Context(), place, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailedFirstImport: an import that brings no block in leaves no network behind, and
// does not touch one that was there.
func TestFailedFirstImport(t *testing.T) {
	d := newDataDirectory(t)
	nothing, broken := filepath.Join(t.TempDir(), "empty.rlp"), filepath.Join(t.TempDir(), "broken.rlp")
	for file, text := range map[string]string{nothing: "", broken: "no block"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--network", "b", "--genesis", d.genesis, nothing}, "network b was not created: "},
		{[]string{"--network", "b", "--genesis", d.genesis, broken}, "network b was not created: "},
		{[]string{"--network", "b", "--family", "starknet", broken}, "network b was not created: "},
		{[]string{"--network", "b", d.chain}, "network b: it is new, so its genesis must be given: expected --genesis with a file or one of mainnet, "},
		{[]string{"--network", "mainnet", "--genesis", "sepolia", d.chain}, "network mainnet: the network mainnet has the genesis of sepolia (want genesis mainnet, or another name for the network)"},
		{[]string{"--network", "sepolia", "--family", "starknet", "--chain", "SN_MAIN", d.chain}, "the network sepolia has the chain SN_MAIN (want SN_SEPOLIA"},
		{[]string{"--network", "a", nothing}, "empty.rlp: is empty"},
		{[]string{"--network", "a", broken}, "broken.rlp"},
	} {
		code, out := runCommand(t, append([]string{"import", "--data", d.path}, test.args...)...)
		if code != exitFailed || !strings.Contains(out, test.want) {
			t.Errorf("%v: exit code %d, expected %d and %q:\n%s", test.args, code, exitFailed, test.want, out)
		}
		left, err := os.ReadDir(filepath.Join(d.path, "networks"))
		if err != nil || len(left) != 1 || left[0].Name() != "a" {
			t.Fatalf("%v leaves %v, %v", test.args, left, err)
		}
	}
}

// networkCommands are all that open a network.
func networkCommands(d dataDirectory) [][]string {
	return [][]string{d.importing(d.genesis), d.goingOn(), d.serve(), d.status(), d.verify(), d.rewind(), d.prune()}
}

// keyCommands are all that open the API keys.
func keyCommands(d dataDirectory) [][]string {
	return [][]string{d.serve(), d.key("create"), d.key("list"), d.key("revoke", "somebody")}
}

// setFormat gives a store another format, as a later version would.
func setFormat(t *testing.T, dir, format string) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	batch := store.NewBatch()
	batch.SetPointer("format", []byte(format))
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files are the contents of all files below a directory, by their paths.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			all[path] = "a directory"
			return nil
		}
		content, err := os.ReadFile(path)
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

// A fork of the schedule that this version does not know is named before it comes.
func TestStatusOfUnknownFork(t *testing.T) {
	d := dataDirectory{path: t.TempDir()}
	described := filepath.Join(t.TempDir(), "genesis.json")
	if err := os.WriteFile(described, []byte(`{
  "config": {
    "chainId": 7,
    "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0, "constantinopleBlock": 0,
    "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0, "terminalTotalDifficulty": 0,
    "shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": 0, "amsterdamTime": 0, "bogotaTime": 4000000000
  },
  "gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {}
}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first, _, err := genesis.Load(described)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := rlp.EncodeToBytes(first.ToBlock())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chain.rlp")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	const warning = "the fork Bogota is scheduled for 2096-10-02T07:06:40Z, and this version does not know it"
	// The file holds the genesis alone.
	if code, out := runCommand(t, "import", "--data", d.path, "--network", "a", "--genesis", described, file); code != exitDone || !strings.Contains(out, warning) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := runCommand(t, d.status()...); code != exitDone || !strings.Contains(out, "a: "+warning) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := runCommand(t, append(d.status(), "--json")...); code != exitDone || !strings.Contains(out, `"unknownFork"`) || !strings.Contains(out, `"time": 4000000000`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
