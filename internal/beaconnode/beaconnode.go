// Package beaconnode makes beacon chains for tests, with the executable specification of
// Ethereum's consensus layer (eth-consensus-specs, which internal/clients/install.sh installs).
// Its state transition makes the blocks and signs as sync committees. A chain over a geth, with
// the beacon API of a consensus client, has geth's blocks as its execution blocks.
package beaconnode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/internal/vectors"
)

// python returns the interpreter that has the specification. Without it the test is skipped, or
// fails if ASHLAR_REQUIRE_ALL is 1.
func python(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("ASHLAR_CLIENTS")
	if folder == "" {
		vectors.Missing(t, "needs the specification of the consensus layer: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	bin := filepath.Join(folder, "consensus-venv", "bin", "python")
	if _, err := os.Stat(bin); err != nil {
		vectors.Missing(t, "the client libraries are incomplete: run internal/clients/install.sh again: "+err.Error())
	}
	return bin
}

// script returns the path of a script of this package.
func script(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "scripts", name)
}

// recorded are the vectors that were made in this process.
var recorded sync.Map // arguments -> func() ([]byte, error)

// Vectors returns, as JSON, what a light client is given on a chain of some epochs, and what the
// specification's own light client makes of it. Forks are written NAME=EPOCH.
func Vectors(t testing.TB, epochs int, forks ...string) []byte {
	t.Helper()
	bin := python(t)
	args := append([]string{script("vectors.py"), strconv.Itoa(epochs)}, forks...)
	record := sync.OnceValues(func() ([]byte, error) {
		var said bytes.Buffer
		run := exec.Command(bin, args...)
		run.Stderr = &said
		out, err := run.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, said.Bytes())
		}
		return out, nil
	})
	once, _ := recorded.LoadOrStore(strings.Join(args, " "), record)
	out, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Options configure a node.
type Options struct {
	Engine string        // URL of geth's Engine API
	Secret string        // file with the secret for it
	Public string        // URL of geth
	Slot   time.Duration // of a slot, in whole seconds
	Past   int           // slots of the chain before now
}

// Node is a beacon node over a geth.
type Node struct {
	URL string
	// Checkpoint is the root of a finalized block in the first period.
	Checkpoint string
}

// Start starts a node, which ends with the test. It returns when the chain has reached the
// present slot; then it gets a block in every slot.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, python(t), script("node.py"),
		o.Engine, o.Secret, o.Public, strconv.Itoa(int(o.Slot/time.Second)), strconv.Itoa(o.Past))
	var said tail
	run.Stderr = &said
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		stop()
		t.Fatal(err)
	}
	var n Node
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &n)
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		stop()
		<-rest
		_ = run.Wait() // it was killed
		if t.Failed() {
			t.Logf("the beacon node's last words:\n%s", said.String())
		}
	})
	if err != nil {
		t.Fatalf("the beacon node did not start: %v\n%s", err, said.String())
	}
	return &n
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// Liar passes requests on to a node and replaces text in the answers.
type Liar struct {
	To   string         // URL of the node
	From *regexp.Regexp // what is replaced, everywhere
	By   string
}

// ServeHTTP implements [http.Handler].
func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := http.NewRequestWithContext(r.Context(), r.Method, l.To+r.URL.RequestURI(), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(l.From.ReplaceAll(body, []byte(l.By))) // the client may be gone
}
