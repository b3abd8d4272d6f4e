package snapshot_test

import (
	"bufio"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// newMakerWithWork has an archive with a chain with proofs of work.
func newMakerWithWork(t *testing.T) *maker {
	t.Helper()
	folder := vectors.Path(t, "chains", "reorg-branches")
	first, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(folder, "blocks_1024_td_135112316.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := &maker{t: t, genesis: first}
	for stream := rlp.NewStream(bufio.NewReader(file), 0); ; {
		block := new(types.Block)
		if err := stream.Decode(block); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		m.blocks = append(m.blocks, block)
	}
	if m.whole, err = archive.Create(t.Context(), ingesttest.Store(t), first); err != nil {
		t.Fatal(err)
	}
	m.follow(m.whole, m.blocks)
	return m
}

// TestDifficulty: the total difficulty of a chain with work is proven as far as the blocks of
// a snapshot reach down to the genesis, and otherwise it must be possible.
func TestDifficulty(t *testing.T) {
	m := newMakerWithWork(t)
	for _, c := range []struct {
		from   uint64
		claim  string // empty: what is right
		proven bool
		kind   error
	}{
		{from: 1, proven: true},
		{from: 257, proven: true},
		{from: 258},
		{from: 1000},
		{from: 257, claim: "1", kind: snapshot.ErrFalse},
		{from: 1000, claim: "1", kind: snapshot.ErrFalse},
		{from: 1000, claim: "100000000000"}, // nobody can know
	} {
		folder := m.made(c.from, c.from)
		if c.claim != "" {
			f := newForged(t, contents(t, folder))
			f.claim(func(manifest map[string]any) { manifest["totalDifficulty"] = c.claim })
			folder = f.folder
		}
		source, err := snapshot.Open(t.Context(), folder, m.genesis, m.hash(c.from))
		if err != nil {
			t.Fatal(err)
		}
		total, proven, err := source.Check(t.Context())
		if !errors.Is(err, c.kind) || proven != c.proven {
			t.Errorf("block %d, claim %q: proven %t, %v", c.from, c.claim, proven, err)
		}
		if header, wrong := m.whole.Header(t.Context(), c.from); wrong != nil || c.claim == "" && total.Cmp(header.TotalDifficulty) != 0 {
			t.Errorf("block %d: total difficulty %d, %v", c.from, total, wrong)
		} else if want, ok := new(big.Int).SetString(c.claim, 10); ok && c.kind == nil && total.Cmp(want) != 0 {
			t.Errorf("block %d: total difficulty %d, want %d", c.from, total, want)
		}
		if err := source.Close(); err != nil {
			t.Fatal(err)
		}
	}
	store := ingesttest.Store(t)
	a, err := m.load(t.Context(), store, m.made(1000, 990), 1000)
	if err != nil {
		t.Fatal(err)
	}
	m.check(store, a, 1000, 990)
}
