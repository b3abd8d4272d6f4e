package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/await"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// TestRewind takes a network back in a keyspace and imports other blocks in place of those
// that are gone. The rewind is killed until it is complete. A reader that has rows on disk
// ends when it notices, and has none of the old ones when it is started again. A reader that
// is started once more reads next to nothing from Cassandra.
func TestRewind(t *testing.T) {
	const shared = 4
	genesis, blocks := ingesttest.Crossing(t)
	other := ingesttest.Diverging(t, shared)
	folder := t.TempDir()
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	start := writeFile(t, folder, "genesis.json", text)
	first, second := writeChain(t, folder, "first.rlp", blocks), writeChain(t, folder, "second.rlp", other[shared:])

	reference := local(t)
	importInto(t, reference, start, writeChain(t, folder, "whole.rlp", other))
	_, want := serve(t, reference)
	shell := process(t, newKeyspace(t), "writer")
	importInto(t, shell, start, first)
	reading := func() (*node.Process, *node.Client, string) {
		operator := freeAddress(t)
		a := process(t, newKeyspace(t), "reader", "operator: "+operator)
		p, client := serve(t, withDiskCache(t, a, filepath.Join(folder, "cache")))
		return p, client, "http://" + operator + "/metrics"
	}
	reader, client, _ := reading()
	askAll(t, client, blocks) // so that rows of the blocks that go are kept

	kills := rewindKilled(t, shell, shared)
	select {
	case <-reader.Done():
		if !strings.Contains(reader.Output(), "rewind") {
			t.Errorf("the reader ended by itself, with:\n%s", reader.Output())
		}
	case <-time.After(await.Patience):
		t.Error("a reader goes on after a rewind")
	}
	importInto(t, shell, start, second)
	t.Logf("a rewind was killed %d times", kills)
	if report, err := shell.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
		t.Errorf("verify: %s, %v", report, err)
	}

	compareAll := func(client *node.Client) {
		t.Helper()
		wanted, got := askAll(t, want, other), askAll(t, client, other)
		for question, answer := range wanted {
			if !bytes.Equal(got[question], answer) {
				t.Errorf("%s: %.300s, expected %.300s", question, got[question], answer)
			}
		}
	}
	reader, client, metrics := reading()
	before := misses(t, metrics)
	compareAll(client)
	cold := misses(t, metrics) - before
	if err := reader.Stop(); err != nil { // which keeps on disk what it has read
		t.Error(err)
	}
	_, client, metrics = reading()
	before = misses(t, metrics)
	compareAll(client)
	warm := misses(t, metrics) - before
	t.Logf("%d reads for the answers, %d when the reader was started again", cold, warm)
	if cold == 0 || warm > cold/20 {
		t.Errorf("%d reads when the reader was started again, %d before, expected next to none", warm, cold)
	}
}

func writeFile(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeChain(t *testing.T, folder, name string, blocks []*types.Block) string {
	t.Helper()
	var out bytes.Buffer
	for _, block := range blocks {
		if err := rlp.Encode(&out, block); err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, folder, name, out.Bytes())
}

// withDiskCache makes a reader keep rows in a directory.
func withDiskCache(t *testing.T, a node.Ashlar, dir string) node.Ashlar {
	t.Helper()
	config, err := os.ReadFile(a.Config)
	if err == nil {
		config = bytes.Replace(config, []byte("store: {"), fmt.Appendf(nil, "store: {cache: {dir: %q, size: 64MiB}, ", dir), 1)
		err = os.WriteFile(a.Config, config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rewindKilled takes a network back to a block, and kills the command at random moments
// until it is complete. It returns how many kills have left a rewind that was under way.
func rewindKilled(t *testing.T, a node.Ashlar, to uint64) (underWay int) {
	t.Helper()
	for kill := range 4 {
		p, err := a.Rewind(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if kill < 3 {
			select {
			case <-p.Done():
			case <-killTime(p, kill > 0):
				p.Kill()
				if _, err := a.Verify(t.Context()); err != nil && strings.Contains(err.Error(), "a rewind is not complete") {
					underWay++
				}
				continue
			}
		}
		if _, err := p.Wait(); err != nil {
			t.Fatalf("%v:\n%s", err, p.Output())
		}
		break
	}
	return underWay
}

// killTime returns a channel that is closed at a random moment: of a rewind, or of its removal of rows, for which it waits
// until the reader has ended.
func killTime(p *node.Process, removing bool) <-chan struct{} {
	now := make(chan struct{})
	go func() {
		defer close(now)
		time.Sleep(500*time.Millisecond + rand.N(1500*time.Millisecond))
		if waits := func() bool {
			output := p.Output()
			return strings.Contains(output, "waiting until the readers") && !strings.Contains(output, "rows are removed now")
		}; removing && waits() {
			for waits() {
				select {
				case <-p.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
			time.Sleep(rand.N(500 * time.Millisecond))
		}
	}()
	return now
}

// askAll asks questions about all blocks.
func askAll(t *testing.T, client *node.Client, blocks []*types.Block) map[string]json.RawMessage {
	t.Helper()
	answers := map[string]json.RawMessage{}
	ask := func(method string, params ...any) {
		t.Helper()
		var answer json.RawMessage
		if err := patiently(t, client, &answer, method, params...); err != nil {
			t.Fatalf("%s %v: %v", method, params, err)
		}
		answers[fmt.Sprint(method, params)] = answer
	}
	for _, block := range blocks {
		at := fmt.Sprintf("0x%x", block.NumberU64())
		ask("eth_getBlockByNumber", at, true)
		ask("eth_getBlockReceipts", at)
		ask("eth_getLogs", map[string]any{"fromBlock": at, "toBlock": at})
		ask("eth_getBalance", ingesttest.StoreContract, at)
		ask("eth_getProof", ingesttest.StoreContract, []string{"0x9"}, at)
		ask("eth_getStorageAt", ingesttest.StoreContract, "0x9", at)
		for _, tx := range block.Transactions() {
			ask("eth_getTransactionReceipt", tx.Hash())
		}
	}
	return answers
}

// misses returns how many reads of rows a reader's cache has not answered.
func misses(t *testing.T, metrics string) (sum int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(name, "ashlar_store_cache_reads_total") && strings.Contains(name, `"miss"`) {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
