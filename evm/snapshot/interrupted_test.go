package snapshot_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"
)

// TestLoadInterrupted: the server refuses any of the requests and the process is killed, or
// the power fails, and the next load completes the archive.
func TestLoadInterrupted(t *testing.T) {
	m := newMaker(t)
	folder := m.made(headNumber, startNumber)
	var requests, most atomic.Int64
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > most.Load() {
			w.WriteHeader(http.StatusGone)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	most.Store(1 << 30)
	if _, err := m.load(t.Context(), ingesttest.Store(t), server.URL, headNumber); err != nil {
		t.Fatal(err)
	}
	total := requests.Load()
	random := rand.New(rand.NewPCG(1, 1))
	for last := int64(0); last < total; last += 1 + random.Int64N(max(1, total/10)) {
		requests.Store(0)
		most.Store(last)
		disk := pebbletest.NewDisk()
		store, err := disk.Open(pebble.Options{Path: "network"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.load(t.Context(), store, server.URL, headNumber); err == nil || !strings.Contains(err.Error(), "410") {
			t.Fatalf("refused after %d of %d requests: %v", last, total, err)
		}
		killed := disk.Killed()
		if random.IntN(2) == 0 {
			killed = disk.PowerCut(random.IntN(101), random)
		}
		store.Close()
		most.Store(1 << 30)
		if store, err = killed.Open(pebble.Options{Path: "network"}); err != nil {
			t.Fatal(err)
		}
		a, err := m.resume(t.Context(), store, server.URL)
		if err != nil {
			t.Fatalf("after a stop at request %d of %d: %v", last, total, err)
		}
		m.check(store, a, headNumber, startNumber)
		store.Close()
	}
}

// resume continues to load a snapshot, whatever is there.
func (m *maker) resume(ctx context.Context, store *pebble.Store, from string) (*archive.Archive, error) {
	first, ok, err := archive.FirstState(ctx, store)
	if err != nil || !ok {
		return m.load(ctx, store, from, headNumber)
	}
	source, err := snapshot.Open(ctx, from, m.genesis, m.hash(headNumber))
	if err != nil {
		return nil, err
	}
	if first != source.State() {
		m.t.Errorf("the first block with state is %s, the snapshot's %s", first, source.State())
	}
	a, err := archive.Open(ctx, store)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	if _, _, err := source.Check(ctx); err != nil {
		return nil, errors.Join(err, source.Close())
	}
	settled, _ := a.Settled()
	later, err := source.Later(ctx, settled.Number)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	return a, errors.Join(m.importFrom(a, later), later.Close(), source.Close())
}

// TestResumeSkips: a load that continues requests no slots of accounts that are complete.
func TestResumeSkips(t *testing.T) {
	m := newMaker(t)
	folder := m.made(headNumber, startNumber)
	slots := 0
	for name := range contents(t, folder) {
		if strings.HasPrefix(name, "slots-") {
			slots++
		}
	}
	var requested, missing atomic.Int64
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if missing.Load() == 1 && strings.HasPrefix(r.URL.Path, "/blocks-00000") && requested.Load() > 0 {
			w.WriteHeader(http.StatusGone) // Start asks for the blocks after the state
			return
		}
		if strings.HasPrefix(r.URL.Path, "/slots-") {
			requested.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	store := ingesttest.Store(t)
	missing.Store(1)
	if _, err := m.load(t.Context(), store, server.URL, headNumber); err == nil || !strings.Contains(err.Error(), "410") {
		t.Fatal(err)
	}
	if got := requested.Load(); got != int64(slots) {
		t.Errorf("%d chunks of slots were requested, want %d", got, slots)
	}
	missing.Store(0)
	requested.Store(0)
	a, err := m.load(t.Context(), store, server.URL, headNumber)
	if err != nil {
		t.Fatal(err)
	}
	if got := requested.Load(); got > int64(slots)/2 {
		t.Errorf("%d of %d chunks of slots were requested again", got, slots)
	}
	m.check(store, a, headNumber, startNumber)
}

// ending is a context that ends when it was asked often enough.
type ending struct {
	context.Context
	left atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return e.Context.Err()
}

// TestCreateInterrupted: an interrupted snapshot has no manifest, and the next one in the
// same folder removes its files first and is like one that was not interrupted.
func TestCreateInterrupted(t *testing.T) {
	m := newMaker(t)
	want := contents(t, m.made(headNumber, startNumber))
	head, from := uint64(headNumber), uint64(startNumber)
	folder := filepath.Join(t.TempDir(), "out")
	options := snapshot.Options{Folder: folder, Head: &head, From: &from, ChunkBytes: 2000}
	// What a kill or another snapshot leaves.
	left := []string{"slots-00000-0123456789abcdef.zst", "slots-00001-0123456789abcdef.zst.unfinished", "manifest.json.unfinished"}
	interrupted := 0
	for asked := int64(1); ; asked *= 3 {
		ctx := &ending{Context: t.Context()}
		ctx.left.Store(asked)
		c, err := snapshot.New(t.Context(), m.whole, options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Run(ctx); err == nil {
			break
		}
		interrupted++
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		files := contents(t, folder)
		if _, ok := files["manifest.json"]; ok {
			t.Error("an interrupted snapshot has a manifest")
		}
		for _, name := range left {
			if _, ok := files[name]; ok {
				t.Errorf("%s of an earlier snapshot takes space beside the new one", name)
			}
		}
		if _, err := m.load(t.Context(), ingesttest.Store(t), folder, headNumber); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("loaded an interrupted snapshot: %v", err)
		}
		for _, name := range left {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("left"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := contents(t, folder); !maps.Equal(got, want) || interrupted < 4 {
		t.Errorf("after %d interruptions the snapshot is another", interrupted)
	}
	if err := m.make(folder, headNumber, startNumber); !errors.Is(err, snapshot.ErrFolder) {
		t.Errorf("a snapshot was made over another: %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.make(foreign, headNumber, startNumber); !errors.Is(err, snapshot.ErrFolder) || len(contents(t, foreign)) != 1 {
		t.Errorf("a snapshot was made among other files: %v", err)
	}
}

// TestRangesRefused: only settled blocks whose state is stored become snapshots.
func TestRangesRefused(t *testing.T) {
	m := newMaker(t)
	part, err := m.load(t.Context(), ingesttest.Store(t), m.made(startNumber, startNumber), startNumber)
	if err != nil {
		t.Fatal(err)
	}
	partial := &maker{t: t, genesis: m.genesis, blocks: m.blocks, whole: part}
	for _, c := range []struct{ head, from uint64 }{{0, 0}, {30, 0}, {20, 21}, {ingesttest.ChainBlocks + 1, 20}} {
		if err := m.make(t.TempDir(), c.head, c.from); !errors.Is(err, snapshot.ErrRange) {
			t.Errorf("blocks %d to %d: %v", c.from, c.head, err)
		}
	}
	pruned := (*archive.Pruned)(nil)
	if err := partial.make(t.TempDir(), startNumber, startNumber-1); !errors.As(err, &pruned) || pruned.First != startNumber {
		t.Errorf("a state that is not stored: %v", err)
	}
}
