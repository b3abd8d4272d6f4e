package differential

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/jsondiff"
	"ashlar/internal/node"
	"ashlar/internal/sample"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// startEach is the number of questions per unit of weight to an Ashlar that began with a
// geth's state.
const startEach = 4

// TestStartFromGeth begins networks with the state of stopped geths and imports the blocks
// after it. Every answer about these blocks must be that of an Ashlar that has executed the
// whole chain, and questions about older blocks get that answer or are refused as pruned.
func TestStartFromGeth(t *testing.T) {
	t.Parallel()
	folder := generateChain(t, 700, 8)
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	_, whole := serveAshlar(t, genesis, file)
	chain := learn(t, genesis, file, whole)
	for _, from := range []struct {
		name   string
		scheme node.Scheme
		full   bool
		head   uint64
		// older is the format of the files that older blocks come from; empty: none do.
		older string
	}{
		{"path full", node.PathScheme, true, 500, ""},
		{"path archive", node.PathScheme, false, 600, ""},
		{"hash full", node.HashScheme, true, 400, ""},
		{"hash archive", node.HashScheme, false, 300, "ere"},
	} {
		t.Run(from.name, func(t *testing.T) {
			before, after := splitChain(t, file, from.head)
			geth := importIntoGeth(t, from.scheme, from.full, genesis, before)
			contents := hashFiles(t, geth.Data)
			a := newAshlar(t, callGasConfig(t))
			p, err := a.ImportFromGeth(t.Context(), genesis, geth.Data, after)
			awaitImport(t, p, err)
			compareFiles(t, contents, hashFiles(t, geth.Data))
			if out, err := a.Verify(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			p, part := serve(t, a)
			compareFrom(t, chain, whole, part, from.head)
			p.Kill()
			if from.older == "" {
				return
			}
			older := t.TempDir()
			if err := geth.ExportHistory(t.Context(), from.older, older, 0, from.head); err != nil {
				t.Fatal(err)
			}
			p, err = a.Import(t.Context(), genesis, older)
			awaitImport(t, p, err)
			compareOlder(t, chain, whole, a)
		})
	}
}

// unknownHash are the messages about the hash of a block or transaction that is not stored.
var unknownHash = regexp.MustCompile("not found|unknown block")

// compareFrom compares the answers of an Ashlar that begins with the state of a block with
// those of one that has all blocks.
func compareFrom(t *testing.T, chain *sample.Chain, whole, part *node.Client, first uint64) {
	for _, slot := range chain.Slots[:min(50, len(chain.Slots))] {
		params := []any{slot.Address, []any{slot.Key}, quantity(first)}
		var theirs, ours any
		if err := errors.Join(whole.Call(t.Context(), &theirs, "eth_getProof", params...), part.Call(t.Context(), &ours, "eth_getProof", params...)); err != nil {
			t.Fatal(err)
		}
		if d := jsondiff.Values(theirs, ours); len(d) > 0 {
			t.Errorf("eth_getProof%v: whole against part: %v", params, d)
		}
	}
	random := rand.New(rand.NewPCG(*seed, first))
	later := questions(&generator{r: random, c: chain, first: first + 1}, startEach)
	later = append(later, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, first+2)), c: chain, first: first + 1}, 1)...)
	later = slices.DeleteFunc(later, func(q question) bool {
		return namesOlder(q) || q.Method == "eth_capabilities" // which names another first block
	})
	report(t, later, ask(t, later, whole, part))
	anything := questions(&generator{r: random, c: chain}, 1)
	pruned := 0
	for i, o := range ask(t, anything, whole, part) {
		if len(o.differences) == 0 {
			continue
		}
		switch refused := o.ashlar.err != nil; {
		case refused && o.ashlar.code() == 4444 && strings.HasPrefix(o.ashlar.message(), "pruned history unavailable: "):
			pruned++
		case refused && unknownHash.MatchString(o.ashlar.message()), !refused && (o.ashlar.result == nil || o.ashlar.result == "0x"):
		case !refused && (anything[i].Method == "eth_feeHistory" || strings.Contains(fmt.Sprint(anything[i].Params), "earliest")): // it has another first block
		default:
			t.Errorf("%s\n  whole against part: %v", anything[i], o.differences)
		}
	}
	if pruned == 0 {
		t.Error("no question was refused as pruned")
	}
	t.Logf("%d of %d questions about any block were refused as pruned", pruned, len(anything))
}

// olderBlocks are the numbers of blocks among the values that ruin a parameter.
var olderBlocks = regexp.MustCompile(`\b(0X1|17)\b`)

// namesOlder reports whether a ruined question is about one of the first blocks.
func namesOlder(q question) bool { return olderBlocks.MatchString(fmt.Sprint(q.Params)) }

// compareOlder asks about any block of the chain, but not about its state.
func compareOlder(t *testing.T, chain *sample.Chain, whole *node.Client, a node.Ashlar) {
	t.Helper()
	if out, err := a.Verify(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	p, part, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	ofBlocks := regexp.MustCompile("^eth_get(Block|Header|Logs|Uncle|Transaction(By|Receipt)|RawTransaction)|^eth_feeHistory|^debug_getRaw")
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 9)), c: chain}, startEach)
	all = slices.DeleteFunc(all, func(q question) bool { return !ofBlocks.MatchString(q.Method) })
	report(t, all, ask(t, all, whole, part))
}

// splitChain splits a chain file after a block.
func splitChain(t *testing.T, file string, after uint64) (first, second string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	parts := [2][]byte{}
	stream := rlp.NewStream(bufio.NewReader(in), 0)
	for {
		raw, err := stream.Raw()
		if errors.Is(err, io.EOF) {
			break
		}
		block := new(types.Block)
		if err := errors.Join(err, rlp.DecodeBytes(raw, block)); err != nil {
			t.Fatal(err)
		}
		at := 0
		if block.NumberU64() > after {
			at = 1
		}
		parts[at] = append(parts[at], raw...)
	}
	dir := t.TempDir()
	first, second = filepath.Join(dir, "first.rlp"), filepath.Join(dir, "second.rlp")
	if err := errors.Join(os.WriteFile(first, parts[0], 0o600), os.WriteFile(second, parts[1], 0o600)); err != nil {
		t.Fatal(err)
	}
	return first, second
}

// hashFiles returns the hashes of all files in a folder, except for locks.
func hashFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	hashes := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "LOCK") {
			return err
		}
		content, err := os.ReadFile(path)
		hash := sha256.Sum256(content)
		hashes[path] = hexutil.Encode(hash[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hashes
}

func compareFiles(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, hash := range before {
		if after[path] != hash {
			t.Errorf("%s has changed", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// callGasConfig returns a configuration with geth's cap on the gas of calls, so that code
// which looks at its gas sees the same.
func callGasConfig(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	if err := os.WriteFile(config, []byte("networks: {test: {call_gas: 50000000}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}
