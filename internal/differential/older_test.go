package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// TestOlderFromGeth begins a network with a snapshot. The blocks before it come from a geth,
// after another node has lied about them, while the process is killed. The blocks after it come
// from the same geth, which the network then follows. Every answer must be that of an Ashlar
// that has executed the whole chain.
func TestOlderFromGeth(t *testing.T) {
	t.Parallel()
	const first, last = 300, 320
	folder := generateChain(t, 400, 8)
	genesis, file := filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	upstream := serveGeth(t, genesis, file)
	whole, asked := serveAshlar(t, genesis, file)
	chain := learn(t, genesis, file, asked)
	snapshot := filepath.Join(t.TempDir(), "out")
	p, err := whole.CreateSnapshot(t.Context(), snapshot, first, last)
	awaitImport(t, p, err)

	part := newAshlar(t, followingConfig(t, upstream.URL))
	p, err = part.LoadSnapshot(t.Context(), genesis, snapshot, chain.Blocks[last].Hash.Hex())
	awaitImport(t, p, err)
	followFromSnapshot(t, part, chain, asked, first, uint64(len(chain.Blocks))-1)
	fetchOlder(t, part, upstream.URL)
	compareOlder(t, chain, asked, part)
}

// followingConfig writes a configuration with which a network follows a node.
func followingConfig(t *testing.T, source string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks: {test: {call_gas: 50000000, source: %q}}\n", source)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// followFromSnapshot serves a network that began with a snapshot until it has followed its
// node to the head, and compares its answers.
func followFromSnapshot(t *testing.T, part node.Ashlar, chain *sample.Chain, whole *node.Client, first, head uint64) {
	t.Helper()
	p, answers, err := part.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	for begun, got := time.Now(), ""; got != quantity(head); time.Sleep(50 * time.Millisecond) {
		if err := answers.Call(t.Context(), &got, "eth_blockNumber"); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("the head is %s, want %s", got, quantity(head))
		}
	}
	compareFrom(t, chain, whole, answers, first)
}

// fetchOlder brings the blocks before the first one from a node: first through one that leaves
// out receipts, which is refused until it is interrupted, and then with kills.
func fetchOlder(t *testing.T, a node.Ashlar, source string) {
	t.Helper()
	to, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("Accept-Encoding") }, ModifyResponse: leaveOutReceipt}
	liar := httptest.NewServer(proxy)
	defer liar.Close()
	p, err := a.ImportOlder(t.Context(), liar.URL)
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the refusal of a block", func() bool { return strings.Contains(p.Output(), "bad block ") })
	stopped := p.Stop() // otherwise it asks again, with pauses
	const left = "interrupted; stored blocks are kept, and the same command continues"
	if code, out := p.ExitCode(), p.Output(); code != 1 || !strings.Contains(out, "node "+liar.URL) || !strings.Contains(out, left) {
		t.Errorf("exit code %d (%v): %s, want 1 with the node and %q", code, stopped, out, left)
	}
	random := rand.New(rand.NewPCG(*seed, 24))
	for range 3 {
		p, err := a.ImportOlder(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		p.Kill()
		if report, err := a.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
			t.Errorf("after a kill: %s, %v", report, err)
		}
	}
	p, err = a.ImportOlder(t.Context(), source)
	awaitImport(t, p, err)
}

// leaveOutReceipt removes the first receipt of blocks that have several from a batch of answers.
func leaveOutReceipt(r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var batch []map[string]json.RawMessage
	if json.Unmarshal(body, &batch) == nil {
		for _, answer := range batch {
			var receipts []string
			if json.Unmarshal(answer["result"], &receipts) == nil && len(receipts) > 1 {
				answer["result"], _ = json.Marshal(receipts[1:])
			}
		}
		if body, err = json.Marshal(batch); err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
	return nil
}
