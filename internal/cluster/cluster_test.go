package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/evm/genesis"
	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
	"ashlar/kv"
	"ashlar/kv/cassandra/cassandratest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// nodes are three nodes, one is a single one.
var (
	nodes = cassandratest.Lazy{Brief: true}
	one   = cassandratest.Lazy{One: true}
)

func TestMain(m *testing.M) {
	code := cassandratest.Main(m, &nodes, &one)
	if err := os.RemoveAll(binFolder); err != nil {
		log.Print(err)
	}
	os.Exit(code)
}

// binFolder has the binary, once it is built.
var binFolder string

const network = "test"

var built = sync.OnceValues(func() (string, error) {
	var err error
	if binFolder, err = os.MkdirTemp("", "ashlar-cluster-"); err != nil {
		return "", err
	}
	return node.BuildAshlar(context.Background(), binFolder)
})

// process returns a process of a cluster: its role, and further lines of its configuration.
func process(t *testing.T, keyspace, role string, more ...string) node.Ashlar {
	t.Helper()
	return configured(t, keyspace, "", role, more...)
}

// notReplicated is process with each row at one node, which takes less of the nodes' processor time. It is for a test that
// compares many answers while no node is away. TestFaults compares answers of three replicas.
func notReplicated(t *testing.T, keyspace, role string, more ...string) node.Ashlar {
	t.Helper()
	return configured(t, keyspace, ", replication: 1", role, more...)
}

func configured(t *testing.T, keyspace, place, role string, more ...string) node.Ashlar {
	t.Helper()
	hosts := nodes.Get(t).Hosts
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	lines := append([]string{
		fmt.Sprintf("store: {cassandra: {hosts: [%s], keyspace: %s, datacenter: datacenter1%s}}", strings.Join(hosts, ", "), keyspace, place),
		"role: " + role, "lame_duck: 0s",
	}, more...)
	config := filepath.Join(t.TempDir(), role+".yaml")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return node.Ashlar{Bin: bin, Network: network, Config: config}
}

// newKeyspace returns the name of a keyspace that does not exist.
func newKeyspace(t *testing.T) string {
	return fmt.Sprintf("%s_%d", strings.ToLower(t.Name()), os.Getpid())
}

// serve starts a process and waits until it answers.
func serve(t *testing.T, a node.Ashlar) (*node.Process, *node.Client) {
	t.Helper()
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, client
}

func importInto(t *testing.T, a node.Ashlar, genesis string, chain ...string) {
	t.Helper()
	p, err := a.Import(t.Context(), genesis, chain...)
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestConformance copies a data directory to a keyspace, replays the recorded conversations
// against a reader that serves the copy without a writer, and copies it back.
func TestConformance(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	first, second := local(t), local(t)
	importInto(t, first, filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
	key, err := first.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader := process(t, newKeyspace(t), "reader")
	copyKilled(t, first, reader) // the role does not matter
	_, client := serve(t, reader)
	if _, _, err := head(t, node.NewClient(client.URL[:strings.LastIndex(client.URL, "/")+1]+key)); err != nil {
		t.Errorf("with a key that was copied: %v", err)
	}
	runTests(t, "ashlar/internal/conformance", "TestExecutionAPIs", nil, "ASHLAR_CONFORMANCE_URL="+client.URL)
	checkKeys(t, reader, client.URL)
	copyKilled(t, reader, second)
	for _, copied := range []node.Ashlar{reader, second} {
		if report, err := copied.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
			t.Errorf("verify: %s, %v", report, err)
		}
	}
}

// checkKeys creates and revokes a key beside a running reader.
func checkKeys(t *testing.T, shell node.Ashlar, url string) {
	t.Helper()
	key, err := shell.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := node.NewClient(url[:strings.LastIndex(url, "/")+1] + key)
	accepted := func() bool {
		_, _, err := head(t, client)
		return err == nil
	}
	within(t, "a new key is accepted", accepted)
	if err := shell.RevokeKey(t.Context(), keyID(key)); err != nil {
		t.Fatal(err)
	}
	within(t, "a revoked key is refused", func() bool { return !accepted() })
}

// keyID returns the ID of a key.
func keyID(key string) string {
	id := sha256.Sum256([]byte(key))
	return hex.EncodeToString(id[:8])
}

// pollEvery is the time between two questions whether something holds. Each costs statements.
const pollEvery = 50 * time.Millisecond

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(pollEvery) {
		if time.Since(began) > await.Patience {
			t.Fatalf("not within %v: %s", await.Patience, what)
		}
	}
}

// TestDifferential compares a reader's answers with geth's.
func TestDifferential(t *testing.T) {
	t.Parallel()
	folder := generate(t, 500, 5)
	keyspace := newKeyspace(t)
	more := fmt.Sprintf("networks: {%s: {scripts: true, call_gas: 50000000}}", network)
	importInto(t, notReplicated(t, keyspace, "writer", more), filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
	_, client := serve(t, notReplicated(t, keyspace, "reader", more))
	runTests(t, "ashlar/internal/differential", "TestAgainstGeth", []string{"-args", "-each", "1"}, "ASHLAR_DIFFERENTIAL_URL="+client.URL, "ASHLAR_DIFFERENTIAL_CHAIN="+folder)
}

// runTests runs tests of another package against a running server. Their time limit is that of .ci/run for this package: the
// usual one of go test, ten minutes, is short on a busy machine.
func runTests(t *testing.T, pkg, run string, arguments []string, environment ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"test", pkg, "-count=1", "-timeout=45m", "-run", "^" + run + "$"}, arguments)...)
	c.Env = append(os.Environ(), environment...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", pkg, run, err, out)
	}
}

// generate writes a chain.
func generate(t *testing.T, blocks, transactions int) (folder string) {
	t.Helper()
	folder = t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "ashlar/bench/chaingen",
		"-blocks", fmt.Sprint(blocks), "-txs", fmt.Sprint(transactions), "-seed", "3", "-out", folder).CombinedOutput()
	if err != nil {
		t.Fatalf("bench/chaingen: %v\n%s", err, out)
	}
	return folder
}

// readChain reads a generated chain, from the genesis block on.
func readChain(t *testing.T, folder string) []*types.Block {
	t.Helper()
	first, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(folder, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	chain := []*types.Block{first.ToBlock()}
	for stream := rlp.NewStream(file, 0); ; {
		block := new(types.Block)
		if err := stream.Decode(block); errors.Is(err, io.EOF) {
			return chain
		} else if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, block)
	}
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// patiently makes a call, and repeats it while the server cannot reach its store: a read is tried for 10 s only, in which
// the nodes of a busy machine may not answer. It is for tests that take no node away.
func patiently(t *testing.T, c *node.Client, result any, method string, params ...any) error {
	for end := time.Now().Add(await.Patience); ; time.Sleep(pollEvery) {
		err := c.Call(t.Context(), result, method, params...)
		var refused *node.Error
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, kv.ErrUnavailable.Error()) || time.Now().After(end) {
			return err
		}
		t.Logf("asked again: %s %v: %v", method, params, err)
	}
}

// head returns the newest block that a server shows.
func head(t *testing.T, c *node.Client) (number uint64, hash string, err error) {
	var block struct {
		Number string
		Hash   string
	}
	var raw json.RawMessage
	if err := c.Call(t.Context(), &raw, "eth_getBlockByNumber", "latest", false); err != nil {
		return 0, "", err
	}
	if err := json.Unmarshal(raw, &block); err != nil {
		return 0, "", err
	}
	_, err = fmt.Sscanf(block.Number, "0x%x", &number)
	return number, block.Hash, err
}

// chainID returns the chain ID of a generated chain.
func chainID(t *testing.T, folder string) uint64 {
	t.Helper()
	first, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	return first.Config.ChainID.Uint64()
}
