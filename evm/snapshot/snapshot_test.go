package snapshot_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// The tests load the state of block startNumber, and blocks up to headNumber.
const (
	startNumber = 25
	headNumber  = 35
)

// maker has an archive with all blocks of the demo network, and makes snapshots of it.
type maker struct {
	t       testing.TB
	genesis *core.Genesis
	blocks  []*types.Block
	whole   *archive.Archive
}

func newMaker(t testing.TB) *maker {
	m := &maker{t: t, genesis: ingesttest.Genesis(t), blocks: ingesttest.Chain(t)}
	a, err := archive.Create(t.Context(), ingesttest.Store(t), m.genesis)
	if err != nil {
		t.Fatal(err)
	}
	m.whole = a
	m.follow(a, m.blocks)
	return m
}

// follow imports blocks into an archive.
func (m *maker) follow(a *archive.Archive, blocks []*types.Block) {
	m.t.Helper()
	if err := m.importFrom(a, ingesttest.SourceOf(blocks)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maker) importFrom(a *archive.Archive, source ingest.Source) error {
	executor, err := execute.New(m.genesis.Config)
	if err != nil {
		return err
	}
	importer, err := ingest.New(m.t.Context(), a, executor, m.genesis)
	if err != nil {
		return err
	}
	return importer.Import(m.t.Context(), source)
}

// make makes a snapshot with chunks of few bytes.
func (m *maker) make(folder string, head, from uint64) error {
	c, err := snapshot.New(m.t.Context(), m.whole, snapshot.Options{Folder: folder, Head: &head, From: &from, ChunkBytes: 2000})
	if err == nil {
		_, err = c.Run(m.t.Context())
	}
	return err
}

// made returns the folder of a snapshot.
func (m *maker) made(head, from uint64) string {
	m.t.Helper()
	folder := filepath.Join(m.t.TempDir(), "out")
	if err := m.make(folder, head, from); err != nil {
		m.t.Fatal(err)
	}
	return folder
}

func (m *maker) hash(number uint64) common.Hash { return m.blocks[number-1].Hash() }

// load loads a snapshot into a store.
func (m *maker) load(ctx context.Context, store kv.Store, from string, head uint64) (*archive.Archive, error) {
	source, err := snapshot.Open(ctx, from, m.genesis, m.hash(head))
	if err != nil {
		return nil, err
	}
	a, err := m.loadFrom(ctx, store, source)
	return a, errors.Join(err, source.Close())
}

func (m *maker) loadFrom(ctx context.Context, store kv.Store, source *snapshot.Source) (*archive.Archive, error) {
	total, _, err := source.Check(ctx)
	if err != nil {
		return nil, err
	}
	start, err := archive.Begin(ctx, store, m.genesis, archive.Beginning{Ref: source.State(), Source: source.Contents()})
	if err != nil {
		return nil, err
	}
	start.BatchBytes = 300
	executor, err := execute.New(m.genesis.Config)
	if err != nil {
		return nil, err
	}
	a, err := ingest.Start(ctx, ingest.StartConfig{
		Start: start, Executor: executor, Genesis: m.genesis, Source: source, TotalDifficulty: total, Progress: new(ingest.StartProgress),
	})
	if err != nil {
		return nil, err
	}
	later, err := source.Later(ctx, source.State().Number)
	if err != nil {
		return nil, err
	}
	return a, errors.Join(m.importFrom(a, later), later.Close())
}

// check imports the rest of the chain, and verifies the archive.
func (m *maker) check(store kv.Store, a *archive.Archive, head, first uint64) {
	m.t.Helper()
	if settled, _ := a.Settled(); settled.Number != head || settled.Hash != m.hash(head) {
		m.t.Errorf("loaded up to %s, want block %d", settled, head)
	}
	if got := a.Extent(); got.State != first {
		m.t.Errorf("it begins with %+v, want the state of block %d", got, first)
	}
	m.follow(a, m.blocks[head:])
	report, err := verify.Run(m.t.Context(), store, verify.Options{To: audit.Head, Full: true}, nil)
	if err != nil || !report.Sound {
		m.t.Fatalf("verify: %v, %+v", err, report)
	}
}

// contents returns the files of a folder.
func contents(t testing.TB, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

// TestRoundTrip: an archive begins with a snapshot, continues with the blocks after it, and
// the snapshots that it makes are those that the whole archive makes.
func TestRoundTrip(t *testing.T) {
	m := newMaker(t)
	for _, c := range []struct{ head, from uint64 }{{startNumber, startNumber}, {headNumber, startNumber}, {1, 1}, {ingesttest.ChainBlocks, ingesttest.ChainBlocks - 1}} {
		folder := m.made(c.head, c.from)
		if again := contents(t, m.made(c.head, c.from)); !maps.Equal(again, contents(t, folder)) {
			t.Errorf("two snapshots of block %d differ: %v", c.head, slices.Sorted(maps.Keys(again)))
		}
		store := ingesttest.Store(t)
		a, err := m.load(t.Context(), store, folder, c.head)
		if err != nil {
			t.Fatal(err)
		}
		m.check(store, a, c.head, c.from)
		part := &maker{t: t, genesis: m.genesis, blocks: m.blocks, whole: a}
		for _, from := range []uint64{c.from, c.head} {
			if got := contents(t, part.made(c.head, from)); !maps.Equal(got, contents(t, m.made(c.head, from))) {
				t.Errorf("the snapshot of the snapshot of block %d from %d differs: %v", c.head, from, slices.Sorted(maps.Keys(got)))
			}
		}
	}
}
