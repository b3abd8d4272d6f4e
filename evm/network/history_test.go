package network

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/era"
	"ashlar/evm/era/eratest"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/file"
	"ashlar/family"
	"ashlar/internal/vectors"
	"ashlar/kv"
)

// keptOpen keeps a store open between imports into it.
type keptOpen struct{ kv.Store }

func (keptOpen) Close() error { return nil }

// shown implements [family.Show].
type shown struct{ done []string }

func (s *shown) Begin(string, func() (read, total int64)) {}

func (s *shown) Done(path string) { s.done = append(s.done, filepath.Base(path)) }

// imports imports files into a network in a store, which the first call makes.
func imports(t *testing.T, store kv.Store, genesis string, paths ...string) (family.Progress, []string, error) {
	t.Helper()
	place := family.Place{Name: "net", Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
	under, err := Family{}.Import(t.Context(), place, map[string]string{flagGenesis: genesis})
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	var show shown
	err = under.Run(t.Context(), paths, &show)
	return under.Progress(), show.done, err
}

// TestHistory exports a network, imports the folder, and imports it again: then the
// file is passed over as a whole.
func TestHistory(t *testing.T) {
	genesis := vectors.Path(t, "execution-apis", "genesis.json")
	store, folder := ingesttest.Store(t), t.TempDir()
	if _, _, err := imports(t, store, genesis, vectors.Path(t, "execution-apis", "chain.rlp")); err != nil {
		t.Fatal(err)
	}
	under, err := Family{}.Export(t.Context(), store, family.Export{Network: "net", Format: "ere", Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := under.Blocks(); first != 0 || last != 54 {
		t.Errorf("the export is of the blocks %d to %d", first, last)
	}
	if err := under.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, last := under.Progress(); files != 1 || last != 54 {
		t.Errorf("%d files up to block %d, want 1 up to 54", files, last)
	}
	other := ingesttest.Store(t)
	for _, want := range []family.Progress{{Blocks: 54, Skipped: 1, Head: 54}, {Skipped: 55, Head: 54}} {
		done, files, err := imports(t, other, genesis, folder)
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if done.Blocks != want.Blocks || done.Skipped != want.Skipped || done.Head != want.Head {
			t.Errorf("%d blocks and %d skipped up to %d, want %+v", done.Blocks, done.Skipped, done.Head, want)
		}
	}
}

// TestHistoryOfAnotherChain: a file whose blocks have numbers that the network has is
// passed over only if they are the same blocks.
func TestHistoryOfAnotherChain(t *testing.T) {
	genesis := vectors.Path(t, "execution-apis", "genesis.json")
	store := ingesttest.Store(t)
	if _, _, err := imports(t, store, genesis, vectors.Path(t, "execution-apis", "chain.rlp")); err != nil {
		t.Fatal(err)
	}
	path := history(t, t.TempDir(), eratest.New(t, 0, 5, 5))
	if _, _, err := imports(t, store, genesis, path); !errors.Is(err, ingest.ErrOtherChain) || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("got the error %v", err)
	}
}

// TestSchedule: a later genesis file may schedule forks to come, and may not move those
// of settled blocks.
func TestSchedule(t *testing.T) {
	right := vectors.Path(t, "execution-apis", "genesis.json")
	text, err := os.ReadFile(right)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, new string) string {
		if strings.Count(string(text), old) != 1 {
			t.Fatalf("the genesis does not have %s once", old)
		}
		path := filepath.Join(t.TempDir(), "genesis.json")
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store, chain := ingesttest.Store(t), vectors.Path(t, "execution-apis", "chain.rlp")
	if _, _, err := imports(t, store, right, chain); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imports(t, store, changed(`"bpo2Time": 540`, `"bpo2Time": 540, "bogotaTime": 4000000000`), chain); err != nil {
		t.Fatal(err)
	}
	n, err := Family{}.Open(t.Context(), store, new(Entries), false)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	status, err := n.Status(t.Context())
	if err != nil || status.UnknownFork == nil || *status.UnknownFork != (family.UnknownFork{Name: "Bogota", Time: 4_000_000_000}) {
		t.Errorf("the unknown fork is %+v, %v", status.UnknownFork, err)
	}
	place := family.Place{Name: "net", Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
	for fork, want := range map[string]string{
		`"osakaTime": 485`: "Osaka fork timestamp: 480 is stored, 485 is given (want the genesis with which the network was created",
		`"ignored": 0`:     "Osaka fork timestamp: 480 is stored, none is given (want",
		`"chainId": 4`:     "its chain ID is 3503995874084926, and 4 is given (want",
	} {
		old := `"osakaTime": 480`
		if strings.HasPrefix(fork, `"chainId"`) {
			old = `"chainId": 3503995874084926`
		}
		moved := map[string]string{flagGenesis: changed(old, fork)}
		if _, err := (Family{}).Import(t.Context(), place, moved); !errors.Is(err, archive.ErrOtherChain) || !strings.Contains(err.Error(), want) {
			t.Errorf("a fork of settled blocks was moved: %v, expected %q", err, want)
		}
	}
}

// history writes a history file of a chain into a folder.
func history(t *testing.T, folder string, c *eratest.Chain) string {
	t.Helper()
	var out bytes.Buffer
	blocks := era.Range{First: c.First, Last: c.First + uint64(len(c.Blocks)) - 1}
	id, err := era.Write(t.Context(), &out, era.ERE, c, blocks)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, era.Name{Network: "net", Era: c.First / era.MaxBlocks, ID: [4]byte(id[:4]), Format: era.ERE}.String())
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHistoryWithGap: a folder that lacks an era is refused before anything is imported.
func TestHistoryWithGap(t *testing.T) {
	folder := t.TempDir()
	history(t, folder, eratest.New(t, 0, 10, 10))
	history(t, folder, eratest.New(t, 2*era.MaxBlocks, 10, 0))
	done, files, err := imports(t, ingesttest.Store(t), "sepolia", folder)
	if !errors.Is(err, file.ErrGap) || !strings.Contains(err.Error(), "no file has the blocks 10 to 16383") || done.Blocks != 0 || len(files) != 0 {
		t.Errorf("imported %+v of %v, got the error %v", done, files, err)
	}
}

func TestExportRefused(t *testing.T) {
	store := ingesttest.Store(t)
	if _, err := (Family{}).Export(t.Context(), store, family.Export{Format: "ere"}); !errors.Is(err, family.ErrNoBlocks) {
		t.Errorf("an empty store: %v", err)
	}
	path := history(t, t.TempDir(), eratest.New(t, 0, 1, 1))
	_, _, err := imports(t, store, "sepolia", path) // only the genesis is there afterwards
	if !errors.Is(err, ingest.ErrOtherChain) {
		t.Fatal(err)
	}
	to := uint64(7)
	if _, err := (Family{}).Export(t.Context(), store, family.Export{Format: "ere", To: &to}); !errors.Is(err, family.ErrRange) || !strings.Contains(err.Error(), "want blocks up to 0") {
		t.Errorf("blocks that are not there: %v", err)
	}
	if _, err := (Family{}).Export(t.Context(), store, family.Export{Format: "era"}); err == nil || !strings.Contains(err.Error(), `unknown format "era" (want era1 or ere)`) {
		t.Errorf("another format: %v", err)
	}
}
