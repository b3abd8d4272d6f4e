package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ashlar/evm/archive"
	"ashlar/internal/node"
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
	folder := generateChain(t, 400, 8)
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	whole := newAshlar(t, callGasConfig(t))
	p, err := whole.Import(t.Context(), genesis, file)
	awaitImport(t, p, err)

	borders := []uint64{120, 230, 310}
	ranges := make([]node.Ashlar, len(borders)+1)
	first, rest := splitChain(t, file, borders[0])
	ranges[0] = newAshlar(t, whole.Config)
	p, err = ranges[0].Import(t.Context(), genesis, first)
	awaitImport(t, p, err)
	for i, border := range borders {
		before, _ := splitChain(t, file, border)
		state := importIntoGeth(t, node.PathScheme, true, genesis, before)
		blocks := rest
		if i+1 < len(borders) {
			blocks, rest = splitChain(t, rest, borders[i+1])
		}
		ranges[i+1] = newAshlar(t, whole.Config)
		p, err := ranges[i+1].ImportFromGeth(t.Context(), genesis, state.Data, blocks)
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
	chain := learn(t, genesis, file, client)
	other, asked := serve(t, joined)
	defer other.Kill()
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 24)), c: chain}, joinEach)
	all = append(all, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 26)), c: chain}, 1)...)
	report(t, all, ask(t, all, client, asked))
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
