package clients

import (
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/evm/source/demo"
	"ashlar/internal/node"
)

// Blocks that tools read, both ends included.
const (
	firstRead = 20
	lastRead  = 30
)

// callFrame is a frame of callTracer.
type callFrame struct {
	To, Input, Error string
	Calls            []callFrame
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

// TestToolsExport has ethereum-etl and cryo export the traces of some blocks, by the methods
// of geth and of Parity, and counts the frames.
func TestToolsExport(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	want := 0
	frames(t, node.NewClient(s.url), firstRead, lastRead, func(*callFrame) { want++ })
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
		if text, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput(); err != nil {
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
	shown, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := shown.Examples()
	if err != nil {
		t.Fatal(err)
	}
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
	installed := filepath.Join(folder(t), "ponder")
	s := serve(t)
	shown, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := shown.Examples()
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	frames(t, node.NewClient(s.url), 1, lastRead, func(f *callFrame) {
		if strings.EqualFold(f.To, examples.Token.Hex()) && strings.HasPrefix(f.Input, "0xa9059cbb") && f.Error == "" {
			want++
		}
	})
	// Node finds the libraries in a folder above the project.
	project, err := os.MkdirTemp(installed, "project")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(project) })
	if err := os.CopyFS(project, os.DirFS(filepath.Join("scripts", "ponder"))); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	command := exec.CommandContext(t.Context(), "node", filepath.Join(installed, "node_modules", "ponder", "dist", "esm", "bin", "ponder.js"),
		"start", "--schema", "calls", "--port", fmt.Sprint(port), "--log-format", "json")
	command.Dir = project
	command.Env = append(os.Environ(), "RPC_URL="+s.url, "TOKEN="+examples.Token.Hex(), "PONDER_TELEMETRY_DISABLED=true")
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	defer func() {
		_ = command.Process.Kill() // fails only if it has ended
		<-ended
	}()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	for deadline := time.Now().Add(5 * time.Minute); !answers(url+"/ready", nil); time.Sleep(200 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Ponder: %v\n%s", err, said.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("Ponder is not ready")
		}
	}
	var got string
	if !answers(url+"/calls", &got) || got != fmt.Sprint(want) || want == 0 {
		t.Errorf("Ponder has %s calls, expected %d", got, want)
	}
}

// answers reports whether a server answers a GET with success, and stores the body.
func answers(url string, body *string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if body != nil {
		*body = string(text)
	}
	return err == nil && response.StatusCode == http.StatusOK
}
