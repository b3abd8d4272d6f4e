package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/history/rows"
	"ashlar/internal/vectors"
	"ashlar/starknet/ingest"
)

// importFiles imports files of the gateways' real blocks.
func importFiles(t *testing.T, data, network, chain string, names ...string) error {
	t.Helper()
	i := Import{Data: data, Network: network, Family: "starknet", Flags: map[string]string{"chain": chain}}
	for _, name := range names {
		i.Files = append(i.Files, vectors.Path(t, "starknet", "feeder", name))
	}
	return i.Run(t.Context(), os.Stderr)
}

// TestImportOfRealBlocks imports what gateways answered about public networks: with
// every hash that can be recomputed right, again without effect, and no further
// than the links go.
func TestImportOfRealBlocks(t *testing.T) {
	data := t.TempDir()
	sepolia := []string{"sepolia_block_0.json", "sepolia_block_1.json", "sepolia_block_2.json", "sepolia_block_3.json", "sepolia_block_4.json", "sepolia_block_5.json", "sepolia_block_6.json"}
	for range 2 {
		if err := importFiles(t, data, "sepolia", "", sepolia...); err != nil {
			t.Fatal(err)
		}
		if err := importFiles(t, data, "mainnet", "", "mainnet_block_0.json", "mainnet_block_1.json", "mainnet_block_2.json"); err != nil {
			t.Fatal(err)
		}
	}
	if err := importFiles(t, data, "middle", "SN_SEPOLIA", "sepolia_block_56377.json"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		network, file string
		want          error
	}{
		{"mainnet", "mainnet_block_8.json", ingest.ErrGap},
		{"mainnet", "sepolia_block_1.json", ingest.ErrOtherChain},
		{"middle", "sepolia_block_6.json", rows.ErrNotFound},
	} {
		if err := importFiles(t, data, test.network, "", test.file); !errors.Is(err, test.want) {
			t.Errorf("%s into %s: %v, want %v", test.file, test.network, err, test.want)
		}
	}
	status, err := ReadStatus(t.Context(), data, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range status.Networks {
		got = append(got, fmt.Sprintf("%s %s %s %d-%d", n.Name, n.Family, n.Chain, n.First, n.Head))
	}
	want := "mainnet starknet SN_MAIN 0-2, middle starknet SN_SEPOLIA 56377-56377, sepolia starknet SN_SEPOLIA 0-6"
	if strings.Join(got, ", ") != want {
		t.Errorf("holds %v, want %s", got, want)
	}
}

// TestImportStopsAtTheFault: a file with a wrong byte ends the import with its
// place, and what came before stays.
func TestImportStopsAtTheFault(t *testing.T) {
	text, err := os.ReadFile(vectors.Path(t, "starknet", "feeder", "sepolia_block_4.json"))
	if err != nil {
		t.Fatal(err)
	}
	events := strings.Index(string(text), `"from_address"`)
	for name, wrong := range map[string]string{
		"a malformed felt": string(text[:events]) + strings.Replace(string(text[events:]), `"0x`, `"0y`, 1),
		"a changed event":  string(text[:events]) + strings.Replace(string(text[events:]), `"0x`, `"0x1`, 1),
	} {
		data, folder := t.TempDir(), t.TempDir()
		files := []string{vectors.Path(t, "starknet", "feeder", "sepolia_block_3.json"), filepath.Join(folder, "block_4.json")}
		if err := os.WriteFile(files[1], []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Import{Data: data, Network: "sepolia", Family: "starknet", Files: files}.Run(t.Context(), os.Stderr)
		if err == nil || !strings.Contains(err.Error(), "block_4.json") {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
		status, err := ReadStatus(t.Context(), data, "")
		if err != nil || len(status.Networks) != 1 || status.Networks[0].Head != 3 {
			t.Errorf("%s: holds %+v, %v, want up to block 3", name, status, err)
		}
	}
}

func TestStarknetIsToldWhatItIs(t *testing.T) {
	for _, i := range []Import{
		{Family: "plasma"}, {Family: "starknet", Flags: map[string]string{"genesis": "mainnet"}}, {Flags: map[string]string{"genesis": "mainnet", "chain": "SN_MAIN"}}, {Family: "starknet", Files: []string{"nowhere"}},
		{Family: "starknet", Flags: map[string]string{"chain": "a b"}},
	} {
		i.Data, i.Network = t.TempDir(), "a"
		if err := i.Run(t.Context(), os.Stderr); err == nil {
			t.Errorf("%+v: no error", i)
		}
	}
}

// An import that was stopped before its store was compact is compacted by the next one, although
// that brings no new block.
func TestImportAgainCompacts(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"sepolia_block_0.json", "sepolia_block_1.json", "sepolia_block_2.json"} { // each is a table
		if err := importFiles(t, data, "sepolia", "", name); err != nil {
			t.Fatal(err)
		}
	}
	tables := func() (names []string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(data, "networks", "sepolia", "*.sst"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	again := func() {
		t.Helper()
		i := Import{Data: data, Network: "sepolia", Family: "starknet", Compact: true, Files: []string{vectors.Path(t, "starknet", "feeder", "sepolia_block_2.json")}}
		if err := i.Run(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	before := tables()
	again()
	once := tables()
	if slices.Equal(before, once) {
		t.Errorf("the store has the tables that it had: %v", before)
	}
	again()
	if twice := tables(); !slices.Equal(once, twice) {
		t.Errorf("a compact store was compacted again: %v became %v", once, twice)
	}
}
