package clients

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/ponder"
)

// Blocks that tools export, both ends included. One of them has a creation that was reverted.
const (
	firstRead = 50
	lastRead  = 60
)

// callFrame is a frame of callTracer.
type callFrame struct {
	Type, To, Input, Error string
	Calls                  []callFrame
}

// frames calls yield for each frame of the blocks, as callTracer returns them.
func frames(t *testing.T, client *node.Client, first, last int, yield func(f *callFrame)) {
	t.Helper()
	var visit func(f *callFrame)
	visit = func(f *callFrame) {
		yield(f)
		for i := range f.Calls {
			visit(&f.Calls[i])
		}
	}
	for number := first; number <= last; number++ {
		var traces []struct{ Result callFrame }
		if err := client.Call(t.Context(), &traces, "debug_traceBlockByNumber", fmt.Sprintf("%#x", number), map[string]any{"tracer": "callTracer"}); err != nil {
			t.Fatal(err)
		}
		for i := range traces {
			visit(&traces[i].Result)
		}
	}
}

// crashed reports whether a program was ended by a fault of its own, whatever the server answered.
func crashed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSEGV
}

// TestToolsExport has ethereum-etl and cryo export the traces of some blocks, by the methods
// of geth and of Parity, and counts the frames.
func TestToolsExport(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	want, undone := 0, 0
	frames(t, node.NewClient(s.url), firstRead, lastRead, func(f *callFrame) {
		want++
		if f.Type == "CREATE" && f.Error == "execution reverted" {
			undone++
		}
	})
	if undone == 0 {
		t.Fatal("no creation was reverted")
	}
	python := filepath.Join(dir, "tracing-venv", "bin", "python")
	out := t.TempDir()
	first, last := fmt.Sprint(firstRead), fmt.Sprint(lastRead)
	geth, extracted, parity := filepath.Join(out, "geth.json"), filepath.Join(out, "geth.csv"), filepath.Join(out, "parity.csv")
	for _, args := range [][]string{
		{"etl.py", "export_geth_traces", "-s", first, "-e", last, "-p", s.url, "-o", geth},
		{"etl.py", "extract_geth_traces", "-i", geth, "-o", extracted},
		{"etl.py", "export_traces", "-s", first, "-e", last, "-p", s.url, "-o", parity},
		{"cryotool.py", s.url, "traces", filepath.Join(out, "traces")},
		{"cryotool.py", s.url, "geth_calls", filepath.Join(out, "geth_calls")},
		{"cryotool.py", s.url, "state_diffs", filepath.Join(out, "state_diffs")},
		{"cryotool.py", s.url, "vm_traces", filepath.Join(out, "vm_traces")},
	} {
		args[0] = filepath.Join("scripts", args[0])
		text, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
		if crashed(err) { // cryo has, on a busy machine
			t.Logf("%v: %v: running it again", args, err)
			if err := os.RemoveAll(args[len(args)-1]); err != nil { // it skips what it has written
				t.Fatal(err)
			}
			text, err = exec.CommandContext(t.Context(), python, args...).CombinedOutput()
		}
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
	}
	for pattern, rows := range map[string]int{extracted: want, parity: want, "traces/*": want, "geth_calls/*": want} {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(out, pattern)
		}
		if got := rowsOf(t, pattern); got != rows {
			t.Errorf("%s has %d rows, expected %d", pattern, got, rows)
		}
	}
	for _, pattern := range []string{"state_diffs/*balance_diffs*", "state_diffs/*storage_diffs*", "vm_traces/*"} {
		if got := rowsOf(t, filepath.Join(out, pattern)); got < want {
			t.Errorf("%s has %d rows, expected at least one per frame", pattern, got)
		}
	}
}

// rowsOf counts the rows of a CSV file, without its header.
func rowsOf(t *testing.T, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	file, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return len(rows) - 1
}

// TestCastTraces runs a transaction and a call under cast's tracers.
func TestCastTraces(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	examples := demoExamples(t)
	var at struct {
		Transactions []struct{ Hash, To string }
	}
	if err := node.NewClient(s.url).Call(t.Context(), &at, "eth_getBlockByNumber", fmt.Sprintf("%#x", block), true); err != nil {
		t.Fatal(err)
	}
	first := at.Transactions[0]
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", first.Hash}, []string{"Traces:", strings.ToLower(first.To) + "::", "[Return]", "successfully executed"}},
		{
			[]string{"call", examples.Token.Hex(), "transfer(address,uint256)", examples.Holder.Hex(), "0", "--from", examples.Holder.Hex(), "--trace"},
			[]string{"Traces:", strings.ToLower(examples.Token.Hex()) + "::", "emit", "[Return]"},
		},
	} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", ".bin", "cast"), append(test.args, "--rpc-url", s.url)...).CombinedOutput()
		for _, want := range test.want { // addresses have a checksum
			if err != nil || !strings.Contains(strings.ToLower(string(out)), strings.ToLower(want)) {
				t.Errorf("cast %v: %v, expected %q\n%s", test.args, err, want, out)
			}
		}
	}
}

// TestPonderIndexesCalls has Ponder index the calls of a token's transfer, inner ones
// included, from callTracer, and compares their number.
func TestPonderIndexesCalls(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	examples := demoExamples(t)
	want := 0
	frames(t, node.NewClient(s.url), 1, block, func(f *callFrame) {
		if strings.EqualFold(f.To, examples.Token.Hex()) && strings.HasPrefix(f.Input, "0xa9059cbb") && f.Error == "" {
			want++
		}
	})
	index := ponder.Start(t, dir, filepath.Join("scripts", "ponder"), "RPC_URL="+s.url, "TOKEN="+examples.Token.Hex())
	index.AwaitReady(t)
	var got int
	if index.Get(t, "/calls", &got); got != want || want == 0 {
		t.Errorf("Ponder has %d calls, expected %d", got, want)
	}
}
