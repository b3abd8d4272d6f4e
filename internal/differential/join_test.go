package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ashlar/evm/archive"
	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/kv"
	"ashlar/kv/pebble"
)

// joinEach is the number of questions per unit of weight to a joined Ashlar.
const joinEach = 3

// TestJoin makes four ranges of a chain, three of them from the states of stopped geths, and
// joins them. The result has the rows of an Ashlar that has executed the whole chain, and its
// answers.
func TestJoin(t *testing.T) {
	t.Parallel()
	geth := findGeth(t)
	folder := generateChain(t, 400, 8)
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	chain, err := sample.Read(genesis, file)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ashlar := func() node.Ashlar {
		return node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: callGasConfig(t)}
	}
	whole := ashlar()
	p, err := whole.Import(t.Context(), genesis, file)
	awaitImport(t, p, err)

	borders := []uint64{120, 230, 310}
	ranges := make([]node.Ashlar, len(borders)+1)
	first, rest := splitChain(t, file, borders[0])
	ranges[0] = ashlar()
	p, err = ranges[0].Import(t.Context(), genesis, first)
	awaitImport(t, p, err)
	for i, border := range borders {
		state := node.Geth{Bin: geth, Data: t.TempDir(), Scheme: node.PathScheme, Full: true}
		if err := state.Init(t.Context(), genesis); err != nil {
			t.Fatal(err)
		}
		before, _ := splitChain(t, file, border)
		p, err := state.Import(t.Context(), before)
		awaitImport(t, p, err)
		blocks := rest
		if i+1 < len(borders) {
			blocks, rest = splitChain(t, rest, borders[i+1])
		}
		ranges[i+1] = ashlar()
		p, err = ranges[i+1].ImportFromGeth(t.Context(), genesis, state.Data, blocks)
		awaitImport(t, p, err)
	}
	// One is joined from below, one from above, and the halves with each other.
	for _, pair := range [][2]int{{1, 0}, {2, 3}, {2, 1}} {
		p, err := ranges[pair[0]].Join(t.Context(), ranges[pair[1]])
		awaitImport(t, p, err)
	}
	joined := ranges[2]
	if out, err := joined.Verify(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if want, got := storedRows(t, whole), storedRows(t, joined); !maps.Equal(want, got) {
		t.Errorf("%d rows, want %d, or others", len(got), len(want))
	}
	served, client := serve(t, whole)
	defer served.Kill()
	if err := chain.Learn(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	other, asked := serve(t, joined)
	defer other.Kill()
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 24)), c: chain}, joinEach)
	report(t, all, ask(t, all, client, asked))
}

func serve(t *testing.T, a node.Ashlar) (*node.Process, *node.Client) {
	t.Helper()
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, client
}

// storedRows returns all rows of a network that is not served.
func storedRows(t *testing.T, a node.Ashlar) map[string]string {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: filepath.Join(a.Data, "networks", a.Network), Options: kv.Options{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all := make(map[string]string)
	for _, table := range archive.Tables() {
		for row, err := range store.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s %x %d", table.Name, row.Partition, row.Sort)] = string(row.Value)
		}
	}
	return all
}
