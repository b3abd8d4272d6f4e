package differential

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"ashlar/internal/jsondiff"
	"ashlar/internal/node"
	"ashlar/internal/sample"
)

var (
	seed = flag.Uint64("seed", 1, "seed of the questions, and of the accounts and blocks of TestCrossing")
	each = flag.Int("each", 20, "questions a kind and unit of weight; 20 make about 6,700; .ci/long asks 60")
)

const (
	shownPerMethod = 3
	askers         = 4
)

// TestAgainstGeth compares Ashlar with geth on one chain. ASHLAR_DIFFERENTIAL_URL
// names another server to put in Ashlar's place, which is how the test itself is
// checked; it must hold the chain in the folder that ASHLAR_DIFFERENTIAL_CHAIN names.
func TestAgainstGeth(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("ASHLAR_DIFFERENTIAL_CHAIN")
	if folder == "" {
		folder = generateChain(t, 600, 25)
	}
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	chain, err := sample.Read(genesis, file)
	if err != nil {
		t.Fatal(err)
	}
	if chain.Head() < 500 {
		t.Fatalf("the chain has %d blocks, want at least 500", chain.Head())
	}
	geth := serveGeth(t, genesis, file)
	var ashlar *node.Client
	if url := os.Getenv("ASHLAR_DIFFERENTIAL_URL"); url != "" {
		ashlar = node.NewClient(url)
	} else {
		_, ashlar = serveAshlar(t, genesis, file)
	}
	if err := chain.Learn(t.Context(), geth); err != nil {
		t.Fatal(err)
	}
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 0)), c: chain}, *each)
	all = append(all, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 1)), c: chain}, *each)...)
	all = append(all, extremeQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 2)), c: chain}, *each)...)
	all = append(all, question{"debug_getBadBlocks", []any{}}) // geth would write them to the file that a wrong argument names
	report(t, all, ask(t, all, geth, ashlar))
	compareFilters(t, chain, geth, ashlar)
	compareParity(t, chain, geth, ashlar)
	compareChainTraces(t, chain, geth, ashlar)
}

// generateChain writes the chain of the demo's block builder.
func generateChain(t *testing.T, blocks, transactions int) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "ashlar/bench/chaingen",
		"-blocks", strconv.Itoa(blocks), "-txs", strconv.Itoa(transactions), "-seed", "3", "-out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("bench/chaingen: %v\n%s", err, out)
	}
	return dir
}

// outcome is how the answers to one question compare.
type outcome struct {
	geth, ashlar answer
	differences  []jsondiff.Difference
}

func ask(t *testing.T, all []question, geth, ashlar *node.Client) []outcome {
	outcomes := make([]outcome, len(all))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(askers)
	for i, q := range all {
		group.Go(func() error {
			body, err := json.Marshal(struct {
				Version string `json:"jsonrpc"`
				ID      int    `json:"id"`
				Method  string `json:"method"`
				Params  any    `json:"params"`
			}{"2.0", i, q.Method, q.Params})
			if err != nil {
				return err
			}
			o := &outcomes[i]
			for range 5 {
				if *o, err = compare(ctx, t, q, body, geth, ashlar); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
				if len(o.differences) == 0 || !o.geth.isLate() && !o.ashlar.isLate() {
					break
				}
				t.Logf("%s took too long: %s, %s", q, o.geth.message(), o.ashlar.message())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// compare asks both one question.
func compare(ctx context.Context, t *testing.T, q question, body []byte, geth, ashlar *node.Client) (o outcome, err error) {
	rawG, errG := post(ctx, t, geth, body)
	rawA, errA := post(ctx, t, ashlar, body)
	if err := errors.Join(errG, errA); err != nil {
		return o, err
	}
	o.geth, errG = parse(q.Method, rawG)
	o.ashlar, errA = parse(q.Method, rawA)
	if err := errors.Join(errG, errA); err != nil {
		o.differences = []jsondiff.Difference{{Path: err.Error(), A: string(rawG), B: string(rawA)}}
		return o, nil
	}
	o.differences = differences(o.geth, o.ashlar)
	return o, nil
}

// isLate reports whether an execution or a request was ended because it took too long, as one can
// on a busy machine.
func (a answer) isLate() bool {
	return slices.ContainsFunc([]string{"execution timeout", "execution aborted (timeout", "request timed out"}, func(late string) bool {
		return strings.Contains(a.message(), late)
	})
}

// post sends a request. It tries again if there is no answer: geth cuts off those that it has
// not sent within 30 s, as on a very busy machine.
func post(ctx context.Context, t *testing.T, to *node.Client, body []byte) (answer []byte, err error) {
	for range 3 {
		if _, answer, err = to.Post(ctx, body); err == nil || ctx.Err() != nil {
			return answer, err
		}
		t.Logf("%s does not answer %s: %v", to.URL, body, err)
	}
	return nil, err
}

// report fails the test for each method with a difference that is not allowed,
// shows the first few, and logs what was asked.
func report(t *testing.T, all []question, outcomes []outcome) {
	type tally struct{ asked, errors, allowed, wrong int }
	methods, reasons := map[string]*tally{}, map[string]int{}
	for i, q := range all {
		o := outcomes[i]
		m := methods[q.Method]
		if m == nil {
			m = &tally{}
			methods[q.Method] = m
		}
		m.asked++
		if o.geth.err != nil {
			m.errors++
		}
		var unexplained []string
		for _, d := range o.differences {
			if name := explain(q, o.geth, o.ashlar, d); name != "" {
				reasons[name]++
			} else {
				unexplained = append(unexplained, d.String())
			}
		}
		switch {
		case len(unexplained) > 0:
			if m.wrong++; m.wrong <= shownPerMethod {
				t.Errorf("%s\n  geth against Ashlar: %s", q, strings.Join(unexplained[:min(len(unexplained), 4)], "\n    "))
			}
		case len(o.differences) > 0:
			m.allowed++
		}
	}
	total := tally{}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		m := methods[name]
		t.Logf("%-42q asked %5d, errors %5d, differ as allowed %5d, differ otherwise %5d", name, m.asked, m.errors, m.allowed, m.wrong)
		total = tally{total.asked + m.asked, total.errors + m.errors, total.allowed + m.allowed, total.wrong + m.wrong}
	}
	t.Logf("seed %d: %+v; allowed differences by reason: %v", *seed, total, reasons)
	if total.wrong > 0 {
		t.Errorf("%d of %d answers differ without a reason", total.wrong, total.asked)
	}
}

// TestDocumented holds docs/differences.md to the list in allowed.go.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			sections = append(sections, name)
		}
	}
	for _, a := range allowances() {
		if !slices.Contains(sections, a.name) {
			t.Errorf("docs/differences.md has no section %q", a.name)
		}
	}
}
