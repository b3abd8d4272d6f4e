package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
)

// The chain of execution-apis: its last block, and the last before the merge.
const (
	historyHead = 54
	lastOfWork  = 35
)

// gethWithHistory is geth with the chain of execution-apis.
func gethWithHistory(t *testing.T, genesis, chain string) node.Geth {
	t.Helper()
	bin, err := node.FindGeth()
	if err != nil {
		vectors.Missing(t, err.Error())
	}
	g := node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme}
	if err := g.Init(t.Context(), genesis); err != nil {
		t.Fatal(err)
	}
	p, err := g.Import(t.Context(), chain)
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestHistoryFilesOfGeth exports one chain from geth and from the service, and expects
// the same bytes. Each imports the files of the other.
func TestHistoryFilesOfGeth(t *testing.T) {
	genesis, chain := vectors.Path(t, "execution-apis", "genesis.json"), vectors.Path(t, "execution-apis", "chain.rlp")
	geth := gethWithHistory(t, genesis, chain)
	for format, last := range map[string]uint64{"ere": historyHead, "era1": lastOfWork} {
		t.Run(format, func(t *testing.T) {
			theirs, ours := t.TempDir(), t.TempDir()
			if err := geth.ExportHistory(t.Context(), format, theirs, 0, last); err != nil {
				t.Fatal(err)
			}
			s := newService(t)
			s.Network = "sepolia" // geth imports only files with the name of a public network
			s.importFiles(t, genesis, chain)
			if err := s.Export(t.Context(), format, ours); err != nil {
				t.Fatal(err)
			}
			sameHistory(t, theirs, ours, last)

			other := importChain(t, genesis, theirs)
			checkHead(t, other.serve(t), last, headOf(t, s, last))

			importer := node.Geth{Bin: geth.Bin, Data: t.TempDir(), Scheme: node.HashScheme}
			if err := importer.Init(t.Context(), genesis); err != nil {
				t.Fatal(err)
			}
			if err := importer.ImportHistory(t.Context(), format, ours); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// headOf is the hash of a block of the service.
func headOf(t *testing.T, s service, number uint64) common.Hash {
	t.Helper()
	return blockAt(t, s.serve(t), fmt.Sprintf("0x%x", number)).Hash
}

// sameHistory compares two folders of one history file and its checksum. geth names
// networks that it does not know unknown, and ends the list without a new line.
func sameHistory(t *testing.T, geth, own string, last uint64) {
	t.Helper()
	theirs, ours := historyOf(t, geth), historyOf(t, own)
	if want := strings.Replace(filepath.Base(theirs), "unknown-", "sepolia-", 1); filepath.Base(ours) != want {
		t.Errorf("the file is called %s, want %s", filepath.Base(ours), want)
	}
	if !bytes.Equal(fileOf(t, theirs), fileOf(t, ours)) {
		t.Errorf("the file of the blocks up to %d is not geth's", last)
	}
	a, b := fileOf(t, filepath.Join(geth, "checksums.txt")), fileOf(t, filepath.Join(own, "checksums.txt"))
	if !bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) {
		t.Errorf("the checksums are %s, geth's are %s", b, a)
	}
}

func historyOf(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*-00000-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the files are %v, %v; want one", found, err)
	}
	return found[0]
}

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamagedHistoryFileOfGeth changes files of geth: each is refused with its name and
// the entry, by its content alone and by the list of checksums.
func TestDamagedHistoryFileOfGeth(t *testing.T) {
	genesis, chain := vectors.Path(t, "execution-apis", "genesis.json"), vectors.Path(t, "execution-apis", "chain.rlp")
	folder := t.TempDir()
	if err := gethWithHistory(t, genesis, chain).ExportHistory(t.Context(), "ere", folder, 0, historyHead); err != nil {
		t.Fatal(err)
	}
	path := historyOf(t, folder)
	data := fileOf(t, path)
	// In a header, in a body, and in the index. Some bytes of a compressed entry may be
	// changed without changing what it decompresses to; these are not.
	for _, at := range []int{100, len(data) / 3, len(data) - 400} {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0xff
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		alone := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(alone, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for where, of := range map[string]string{"beside its list": folder, "alone": alone} {
			p, err := newService(t).Import(t.Context(), genesis, of)
			if err == nil {
				_, err = p.Wait()
			}
			if err == nil || !strings.Contains(err.Error(), filepath.Base(path)+": ") || !strings.Contains(err.Error(), "at byte ") {
				t.Errorf("byte %d, %s: got the error %v", at, where, err)
			}
		}
	}
}
