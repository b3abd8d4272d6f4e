package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ashlar/evm/source/demo"
	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// block is the block that clients read; the demo has more.
const block = 30

// library is a client library and how its script is run.
type library struct {
	name    string
	command []string // what runs the script, relative to the folder of the libraries unless it is a name
	script  string

	packages string // folder of Python packages that go before others; may be empty

	batches bool // the script also reads in batches
	heads   bool // the script also subscribes to heads
}

func libraries() []library {
	return []library{
		{name: "ethers", command: []string{"node"}, script: "ethers.mjs"},
		{name: "viem", command: []string{"node"}, script: "viem.mjs", batches: true},
		{name: "web3.py", command: []string{filepath.Join("venv", "bin", "python")}, script: "web3client.py"},
		{name: "ethers 5", command: []string{"node"}, script: "ethers5.mjs", batches: true, heads: true},
		{name: "web3.js", command: []string{"node"}, script: "web3.mjs", batches: true, heads: true},
	}
}

// folder is the folder with the libraries.
func folder(t *testing.T) string {
	dir := os.Getenv("ASHLAR_CLIENTS")
	if dir == "" {
		vectors.Missing(t, "needs client libraries: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "viem")); err != nil {
		vectors.Missing(t, "client libraries are incomplete: "+err.Error())
	}
	return dir
}

// service is a demo that runs until the test ends.
type service struct {
	ashlar node.Ashlar
	url    string
}

func serve(t *testing.T, flags ...string) service {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := service{ashlar: node.Ashlar{Bin: bin, Data: t.TempDir()}}
	process, url, err := s.ashlar.Demo(t.Context(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	s.url = url
	return s
}

// demoExamples returns what the demo that serve starts has.
func demoExamples(t *testing.T) demo.Examples {
	t.Helper()
	shown, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := shown.Examples()
	if err != nil {
		t.Fatal(err)
	}
	return examples
}

// read runs the script of a library for EVM networks.
func read(t *testing.T, dir string, l library, s service, more ...string) (answers map[string]any) {
	t.Helper()
	examples := demoExamples(t)
	socket := node.SocketURL(s.url)
	args := []string{s.url, socket, fmt.Sprint(examples.Token), fmt.Sprint(examples.Holder), fmt.Sprint(block)}
	run(t, dir, l, &answers, append(args, more...)...)
	return answers
}

// scriptTime is how long a script may run. It is far longer than any takes on a busy machine.
const scriptTime = 2 * await.Patience

// copyScript copies a script to the folder of the libraries, since scripts find their libraries in their own folder. Tests
// that run at the same time have a copy each: none may read one that another test has only begun to write.
func copyScript(t *testing.T, dir, name string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(dir, "*-"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// run runs a library's script and decodes its output.
func run(t *testing.T, dir string, l library, answers any, args ...string) {
	t.Helper()
	script := copyScript(t, dir, l.script)
	program := l.command[0]
	if strings.ContainsRune(program, filepath.Separator) {
		program = filepath.Join(dir, program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	command := exec.CommandContext(ctx, program, append([]string{script}, args...)...)
	if l.packages != "" {
		command.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, l.packages))
	}
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%.1000s%s", l.name, err, out, &failure)
	}
	if err := json.Unmarshal(out, answers); err != nil {
		t.Fatalf("%s: %v\n%.1000s", l.name, err, out)
	}
}

// Every library reads the same data over HTTP, in batches and over WebSocket, and it equals the
// service's answers to plain requests.
func TestLibrariesRead(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	var want struct {
		Hash         string   `json:"hash"`
		Transactions []string `json:"transactions"`
	}
	if err := node.NewClient(s.url).Call(t.Context(), &want, "eth_getBlockByNumber", fmt.Sprintf("%#x", block), false); err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries() {
		t.Run(l.name, func(t *testing.T) {
			answers := read(t, dir, l, s)
			over, ok := answers["http"].(map[string]any)
			if !ok || over["hash"] != want.Hash || len(over["transactions"].([]any)) != len(want.Transactions) || over["logs"].(float64) < 1 ||
				over["held"] == "0" || over["follows"] != true || over["reverted"] == nil || over["reverted"] == "no" ||
				l.name == "viem" && (over["simulated"] != true || over["sent"] != want.Transactions[0]) {
				t.Errorf("read over HTTP: %v", answers["http"])
			}
			for transport, reads := range map[string]bool{"ws": true, "batched": l.batches} {
				if got, ok := answers[transport]; ok != reads || ok && !reflect.DeepEqual(got, answers["http"]) {
					t.Errorf("%s\n%v\nover HTTP\n%v", transport, got, answers["http"])
				}
			}
			if heads, ok := answers["heads"]; ok != l.heads || ok && heads != 1.0 {
				t.Errorf("the second head is %v after the first, expected 1", heads)
			}
			if answers["wrongKey"] != 401.0 {
				t.Errorf("a wrong key: %v", answers["wrongKey"])
			}
		})
	}
}

// viem retries after the delay in Retry-After, so all its requests succeed with a key whose rate limit
// is lower than its rate of requests.
func TestLibraryHeedsRetryAfter(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	restrict := exec.CommandContext(t.Context(), s.ashlar.Bin, "key", "restrict", "--data", s.ashlar.Data, "--per-second", "20", "demo")
	if out, err := restrict.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	viem := libraries()[1]
	if answers := read(t, dir, viem, s, "10"); answers["answered"] != 10.0 {
		t.Errorf("%v calls were answered, expected 10", answers["answered"])
	}
}
