// Package ponder runs projects of Ponder, an indexer, for tests.
package ponder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ashlar/internal/node"
)

// Index is Ponder's process for one project, which ends with the test.
type Index struct {
	url   string
	said  bytes.Buffer  // complete once ended is closed
	ended chan struct{} // closed when the process has ended
}

// Start starts a project: a folder without Ponder itself, which is in the folder of client
// libraries. environment has entries such as "RPC_URL=http://127.0.0.1:8545".
func Start(t *testing.T, libraries, project string, environment ...string) *Index {
	t.Helper()
	installed := filepath.Join(libraries, "ponder")
	// Node finds the libraries in a folder above the project.
	dir, err := os.MkdirTemp(installed, "project")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.CopyFS(dir, os.DirFS(project)); err != nil {
		t.Fatal(err)
	}
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	port := address[len("127.0.0.1:"):]
	command := exec.Command("node", filepath.Join(installed, "node_modules", "ponder", "dist", "esm", "bin", "ponder.js"),
		"start", "--schema", "test", "--port", port, "--log-format", "json")
	command.Dir = dir
	command.Env = append(append(os.Environ(), "PONDER_TELEMETRY_DISABLED=true"), environment...)
	p := &Index{url: "http://" + address, ended: make(chan struct{})}
	command.Stdout, command.Stderr = &p.said, &p.said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // what it said tells more
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // fails only if it has ended
		<-p.ended
		if t.Failed() {
			said := p.said.Bytes()
			t.Logf("Ponder said at last:\n%s", said[max(0, len(said)-4000):])
		}
	})
	return p
}

// AwaitReady returns when the project has indexed the blocks that there were when it started.
func (p *Index) AwaitReady(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if _, err := p.get("/ready"); err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatal("Ponder has ended")
		default:
		}
		if time.Now().After(end) {
			t.Fatal("Ponder is not ready")
		}
	}
}

// Get decodes what the project's API answers at a path.
func (p *Index) Get(t *testing.T, path string, answer any) {
	t.Helper()
	text, err := p.get(path)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		t.Fatalf("%s of Ponder: %v", path, err)
	}
}

func (p *Index) get(path string) ([]byte, error) {
	response, err := http.Get(p.url + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.500s", response.Status, text)
	}
	return text, err
}
