package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/era"
	"ashlar/evm/execute"
	"ashlar/evm/export"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/file"
	"ashlar/history/retention"
	"ashlar/internal/vectors"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// imported is an archive of the blocks of files.
func imported(t *testing.T, g *core.Genesis, paths ...string) *archive.Archive {
	t.Helper()
	return importedIn(t, ingesttest.Store(t), g, paths...)
}

func importedIn(t *testing.T, store kv.Store, g *core.Genesis, paths ...string) *archive.Archive {
	t.Helper()
	a, err := archive.Create(t.Context(), store, g)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	importer, err := ingest.New(t.Context(), a, executor, g)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := file.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = importer.Import(t.Context(), f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// crossing is the chain of execution-apis, which crosses the merge and every fork to Osaka.
func crossing(t *testing.T) (*archive.Archive, *core.Genesis) {
	t.Helper()
	return crossingIn(t, ingesttest.Store(t))
}

func crossingIn(t *testing.T, store kv.Store) (*archive.Archive, *core.Genesis) {
	t.Helper()
	folder := vectors.Path(t, "execution-apis")
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	return importedIn(t, store, g, filepath.Join(folder, "chain.rlp")), g
}

// merge is the first block of that chain after the merge.
const merge = 36

func run(t *testing.T, a *archive.Archive, o export.Options) {
	t.Helper()
	if err := try(t.Context(), a, o); err != nil {
		t.Fatal(err)
	}
}

func try(ctx context.Context, a *archive.Archive, o export.Options) error {
	e, err := export.New(ctx, a, o)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func to(n uint64) *uint64 { return &n }

// names lists a folder.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPublished exports the first blocks of mainnet. The file is the published one, byte
// for byte.
func TestPublished(t *testing.T) {
	published := vectors.Path(t, "era1", "mainnet-00000-5ec1ffb8.era1")
	g, _ := genesis.Builtin("mainnet")
	folder := t.TempDir()
	run(t, imported(t, g, published), export.Options{Network: "mainnet", Format: era.Era1, Folder: folder})
	if want := []string{era.ChecksumsName, filepath.Base(published)}; !slices.Equal(names(t, folder), want) {
		t.Fatalf("the folder has %v, want %v", names(t, folder), want)
	}
	data := read(t, published)
	if !bytes.Equal(read(t, folder, filepath.Base(published)), data) {
		t.Error("the file differs from the published one")
	}
	if got, want := string(read(t, folder, era.ChecksumsName)), fmt.Sprintf("0x%x\n", sha256.Sum256(data)); got != want {
		t.Errorf("the checksums are %q, want %q", got, want)
	}
}

// TestRoundTrip exports a chain that crosses the merge, imports the files into another
// archive, and expects every block and receipt there, byte for byte. What that exports
// is the same again.
func TestRoundTrip(t *testing.T) {
	a, g := crossing(t)
	head, _ := a.Settled()
	for _, test := range []struct {
		format era.Format
		last   uint64
		name   string
	}{
		{era.ERE, head.Number, fmt.Sprintf("a-net-00000-%x-noproofs.ere", head.Hash[:4])},
		{era.Era1, merge - 1, ""},
	} {
		t.Run(test.format.Extension(), func(t *testing.T) {
			folder, again := t.TempDir(), t.TempDir()
			options := export.Options{Network: "a-net", Format: test.format, Folder: folder}
			run(t, a, options)
			files, err := file.List(folder)
			if err != nil || len(files) != 1 {
				t.Fatalf("the files are %v, %v", files, err)
			}
			if want := (era.Range{First: 0, Last: test.last}); files[0].Blocks != want || test.name != "" && filepath.Base(files[0].Path) != test.name {
				t.Errorf("the file is %+v, want %s with %+v", files[0], test.name, want)
			}
			other := imported(t, g, files[0].Path)
			if last, _ := other.Settled(); last.Number != test.last {
				t.Fatalf("block %d is the last, want %d", last.Number, test.last)
			}
			for number := range test.last + 1 {
				if !bytes.Equal(encoded(t, a, number), encoded(t, other, number)) {
					t.Errorf("block %d differs", number)
				}
			}
			options.Folder = again
			run(t, other, options)
			for _, name := range names(t, folder) {
				if !bytes.Equal(read(t, folder, name), read(t, again, name)) {
					t.Errorf("exported again, %s differs", name)
				}
			}
		})
	}
}

// encoded is a block and its receipts as they are hashed.
func encoded(t *testing.T, a *archive.Archive, number uint64) []byte {
	t.Helper()
	header, err := a.Header(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	body, err := a.Body(t.Context(), number, nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := body.Block(header.Header)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rlp.EncodeToBytes(block)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := a.Receipts(t.Context(), number, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, transaction := range block.Transactions() {
		receipt, err := receipts.Whole(i, transaction.Type())
		if err != nil {
			t.Fatal(err)
		}
		receipt.Bloom = types.CreateBloom(receipt)
		raw, err := receipt.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw...)
	}
	return out
}

// emptyChain is an archive of that many blocks after the merge with nothing in them.
func emptyChain(t *testing.T, blocks uint64) *archive.Archive {
	t.Helper()
	g := ingesttest.Genesis(t)
	a := imported(t, g)
	var group []*evm.Delta
	parent := g.ToBlock().Header()
	for number := uint64(1); number < blocks; number++ {
		header := types.CopyHeader(parent)
		header.ParentHash, header.Number, header.Time = parent.Hash(), new(big.Int).SetUint64(number), parent.Time+1
		header.Difficulty = new(big.Int)
		block := types.NewBlock(header, &types.Body{Withdrawals: types.Withdrawals{}}, nil, trie.NewListHasher())
		if group = append(group, &evm.Delta{Block: block}); len(group) == 1024 || number == blocks-1 {
			if err := a.Append(t.Context(), group...); err != nil {
				t.Fatal(err)
			}
			group = nil
		}
		parent = block.Header()
	}
	return a
}

// TestEras: each era has a file of its own, whatever part of it is exported.
func TestEras(t *testing.T) {
	a := emptyChain(t, 2*era.MaxBlocks+10)
	folder := t.TempDir()
	o := export.Options{Network: "net", Format: era.ERE, Folder: folder, From: 100}
	run(t, a, o)
	files, err := file.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []era.Range{{First: 100, Last: era.MaxBlocks - 1}, {First: era.MaxBlocks, Last: 2*era.MaxBlocks - 1}, {First: 2 * era.MaxBlocks, Last: 2*era.MaxBlocks + 9}}
	if len(files) != len(want) {
		t.Fatalf("the files are %+v", files)
	}
	for i, f := range files {
		if f.Blocks != want[i] {
			t.Errorf("file %d holds %+v, want %+v", i, f.Blocks, want[i])
		}
		if n, ok := era.ParseName(f.Path); !ok || n.Era != uint64(i) {
			t.Errorf("file %d is called %s", i, filepath.Base(f.Path))
		}
		if err := readWhole(f.Path); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(files[1].Path); err != nil {
		t.Fatal(err)
	}
	if err := file.CheckGaps([]file.Listed{files[0], files[2]}, 0); !errors.Is(err, file.ErrGap) || !strings.Contains(err.Error(), "no file has the blocks 8192 to 16383") {
		t.Errorf("got the error %v", err)
	}
}

// TestRanges exports parts of a chain, which go on where the last one ended.
func TestRanges(t *testing.T) {
	a, g := crossing(t)
	head, _ := a.Settled()
	first, second := t.TempDir(), t.TempDir()
	run(t, a, export.Options{Network: "net", Format: era.ERE, Folder: first, To: to(20)})
	run(t, a, export.Options{Network: "net", Format: era.ERE, Folder: second, From: 21})
	files, err := file.List(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.CheckGaps(files, 0); err != nil {
		t.Error(err)
	}
	if last, _ := imported(t, g, files[0].Path, files[1].Path).Settled(); last != head {
		t.Errorf("block %s is the last, want %s", last, head)
	}
}

func TestRangesRefused(t *testing.T) {
	a, _ := crossing(t)
	head, _ := a.Settled()
	for _, test := range []struct {
		name   string
		format era.Format
		from   uint64
		to     *uint64
		want   string
	}{
		{"behind the head", era.ERE, head.Number + 1, nil, fmt.Sprintf("want blocks up to %d", head.Number)},
		{"to behind the head", era.ERE, 0, to(head.Number + 1), fmt.Sprintf("found 0 to %d, want blocks up to %d", head.Number+1, head.Number)},
		{"backwards", era.ERE, 9, to(8), "found 9 to 8, want the first before the last"},
		{"era1 across the merge", era.Era1, 0, to(merge), fmt.Sprintf("the merge, which comes with block %d", merge)},
		{"era1 after the merge", era.Era1, merge, nil, fmt.Sprintf("the merge, which comes with block %d", merge)},
	} {
		folder := filepath.Join(t.TempDir(), "made only if something is written")
		err := try(t.Context(), a, export.Options{Network: "net", Format: test.format, Folder: folder, From: test.from, To: test.to})
		if !errors.Is(err, export.ErrRange) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.name, err, test.want)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is there", test.name)
		}
	}
}

// TestWithoutFirstBlocks exports blocks of an archive that does not have the first ones.
func TestWithoutFirstBlocks(t *testing.T) {
	store := ingesttest.Store(t)
	a, _ := crossingIn(t, store)
	head, _ := a.Settled()
	o := export.Options{Network: "net", Format: era.Era1, Folder: t.TempDir()}
	keepFrom := func(number uint64) {
		t.Helper()
		kept := retention.Span(head.Number - number + 1)
		err := window.New(a, store, retention.Window{State: kept, History: kept}, window.Options{}).Move(t.Context())
		if err == nil {
			a, err = archive.Open(t.Context(), store) // which has cached no header
		}
		if err != nil || a.Extent().Blocks != number {
			t.Fatalf("it begins with %v, %v, want block %d", a.Extent(), err, number)
		}
		o.From = number
	}
	keepFrom(30)
	e, err := export.New(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := (era.Range{First: 30, Last: merge - 1}); e.Blocks() != want {
		t.Errorf("blocks %+v are exported, want %+v", e.Blocks(), want)
	}
	if err := e.Run(t.Context()); err != nil {
		t.Error(err)
	}
	keepFrom(merge + 2)
	if _, err := export.New(t.Context(), a, o); !errors.Is(err, export.ErrRange) || !strings.Contains(err.Error(), fmt.Sprintf("the merge, which comes with block %d or before", merge+2)) {
		t.Errorf("after the merge: %v", err)
	}
}

// TestStopped: an export that is stopped leaves no file that looks whole, and the next
// one is not kept back by what it left.
func TestStopped(t *testing.T) {
	a, _ := crossing(t)
	folder := t.TempDir()
	o := export.Options{Network: "net", Format: era.ERE, Folder: folder}
	ctx, stop := context.WithCancel(t.Context())
	e, err := export.New(ctx, a, o)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
	if left := names(t, folder); len(left) > 0 {
		t.Errorf("the folder has %v", left)
	}
	// A crash leaves the temporary file.
	if err := os.WriteFile(filepath.Join(folder, ".net-00000-00000000-noproofs.ere.partial"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, a, o)
	if left := names(t, folder); len(left) != 2 {
		t.Errorf("the folder has %v, want a file and the checksums", left)
	}
}
