package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/history/retention"
	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/jsonrpc"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// A chain whose archive is kept to a window. A snapshot of the first state of the window has
// the same blocks as the window: 256 before that state.
const (
	windowChain  = 600
	windowPiece  = 100 // blocks that are imported at once
	windowProofs = 40  // in the end
	windowState  = 100
	windowBlocks = windowState + 256
	firstState   = windowChain - windowState + 1
	firstBlock   = windowChain - windowBlocks + 1
)

// kept is the window with all proofs.
var kept = retention.Window{State: windowState, History: windowBlocks}

// onOne returns a process whose stores are on a single node, and where they are.
func onOne(t *testing.T, keyspace, role string) (node.Ashlar, store.Cassandra) {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	place := store.DefaultCassandra()
	place.Hosts, place.Keyspace, place.Replication = one.Get(t).Hosts, keyspace, 1
	text := fmt.Sprintf("store: {cassandra: {hosts: %q, keyspace: %s, replication: 1}}\nrole: %s\nlame_duck: 0s\n", place.Hosts, keyspace, role)
	return node.Ashlar{Bin: bin, Network: network, Config: writeFile(t, t.TempDir(), role+".yaml", []byte(text))}, place
}

// TestWindow keeps an archive on Cassandra to a window while its chain grows six times as
// long, with removals that are interrupted, beside a reader. The archive is sound, answers like
// one with all history or refuses, and takes as much space as a new one of that window.
func TestWindow(t *testing.T) {
	t.Parallel()
	folder := generate(t, windowChain, 4)
	chain, genesis := readChain(t, folder), filepath.Join(folder, "genesis.json")
	whole := local(t)
	importInto(t, whole, genesis, filepath.Join(folder, "chain.rlp"))
	_, want := serve(t, whole)

	keyspace := newKeyspace(t)
	writer, place := onOne(t, keyspace, "writer")
	serving := func() *node.Client {
		reader, _ := onOne(t, keyspace, "reader")
		_, client := serve(t, reader)
		return client
	}
	var beside *node.Client
	for last := windowPiece; last <= windowChain; last += windowPiece {
		importInto(t, writer, genesis, writeChain(t, folder, "piece.rlp", chain[max(1, last-windowPiece+1):last+1]))
		if beside == nil {
			beside = serving()
		}
		awaitHead(t, beside, chain[last])
		moveWindow(t, place, kept)
	}
	if report, err := writer.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
		t.Errorf("verify: %s, %v", report, err)
	}
	checkWindow(t, want, serving(), chain)

	snapshot := filepath.Join(folder, "snapshot")
	created, err := writer.CreateSnapshot(t.Context(), snapshot, firstState, windowChain)
	if err == nil {
		_, err = created.Wait()
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, created.Output())
	}
	fresh, _ := onOne(t, keyspace+"_fresh", "writer")
	embedded := local(t)
	for name, to := range map[string]node.Ashlar{"on Cassandra": fresh, "embedded": embedded} {
		loaded, err := to.LoadSnapshot(t.Context(), genesis, snapshot, chain[windowChain].Hash().Hex())
		if err == nil {
			_, err = loaded.Wait()
		}
		if err != nil {
			t.Fatalf("%s: %v:\n%s", name, err, loaded.Output())
		}
		if report, err := to.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
			t.Errorf("%s: verify: %s, %v", name, report, err)
		}
	}
	_, got := serve(t, embedded)
	checkWindow(t, want, got, chain)
	shorter := kept
	shorter.Proofs = windowProofs
	moveWindow(t, place, shorter)
	if report, err := writer.Verify(t.Context()); err != nil || !strings.Contains(report, "sound") {
		t.Errorf("verify: %s, %v", report, err)
	}
	checkProofs(t, want, serving(), chain)
	compareSize(t, keyspace, keyspace+"_fresh")
}

// checkProofs compares the proofs of a network that is kept to a window, of which the oldest states have
// no trie nodes, with those of one that has all history.
func checkProofs(t *testing.T, want, got *node.Client, chain []*types.Block) {
	t.Helper()
	for number := firstState; number <= windowChain; number += 3 {
		at, who := hexutil.EncodeUint64(uint64(number)), receiver(chain[number])
		var whole, answer json.RawMessage
		if err := patiently(t, want, &whole, "eth_getProof", who, []string{"0x0"}, at); err != nil {
			t.Fatal(err)
		}
		if number < windowChain-windowProofs+1 {
			if !pruned(t, got, "eth_getProof", who, []string{"0x0"}, at) {
				t.Errorf("a proof of block %d is not refused as pruned", number)
			}
			continue
		}
		if err := patiently(t, got, &answer, "eth_getProof", who, []string{"0x0"}, at); err != nil || string(answer) != string(whole) {
			t.Errorf("a proof of block %d: %.300s, %v, expected %.300s", number, answer, err, whole)
		}
	}
}

// moveWindow moves the window of the network to its last blocks. The removal is interrupted
// up to three times.
func moveWindow(t *testing.T, place store.Cassandra, w retention.Window) {
	t.Helper()
	for attempt := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
		if attempt < 3 {
			ctx, cancel = context.WithTimeout(t.Context(), rand.N(2*time.Second))
		}
		err := moveOnce(ctx, place, w)
		cancel()
		if err == nil {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) || attempt == 3 {
			t.Fatal(err)
		}
	}
}

func moveOnce(ctx context.Context, place store.Cassandra, w retention.Window) (err error) {
	stores, err := store.Connect(ctx, place, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	stores.AwaitLeases()
	opened, _, err := app.OpenStore(ctx, stores, network, kv.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	a, err := archive.Open(ctx, opened)
	if err != nil {
		return err
	}
	return window.New(a, piecewise{opened}, w, window.Options{Ancestors: 256, Work: 50 * time.Millisecond}).Move(ctx)
}

// piecewise is a store on Cassandra whose window does not wait for the next block, with which
// readers notice it: here none comes while it moves.
type piecewise struct{ kv.Store }

func (piecewise) Piecewise() {}

// pruned reports whether a question is refused because of the window.
func pruned(t *testing.T, c *node.Client, method string, params ...any) bool {
	t.Helper()
	var answer json.RawMessage
	err := patiently(t, c, &answer, method, params...)
	var refused *node.Error
	return errors.As(err, &refused) && refused.Code == jsonrpc.CodePruned
}

// receiver returns an account that a block concerns.
func receiver(block *types.Block) common.Address {
	for _, tx := range block.Transactions() {
		if to := tx.To(); to != nil {
			return *to
		}
	}
	return block.Coinbase()
}

// checkWindow compares the answers of a network that is kept to a window with those of one
// that has all history.
func checkWindow(t *testing.T, want, got *node.Client, chain []*types.Block) {
	t.Helper()
	ask := func(c *node.Client, method string, params ...any) string {
		t.Helper()
		var answer json.RawMessage
		if err := patiently(t, c, &answer, method, params...); err != nil {
			t.Errorf("%s %v: %v", method, params, err)
		}
		return string(answer)
	}
	compare := func(method string, params ...any) {
		t.Helper()
		if whole, answer := ask(want, method, params...), ask(got, method, params...); answer != whole {
			t.Errorf("%s %v: %.300s, expected %.300s", method, params, answer, whole)
		}
	}
	for number := firstBlock; number <= windowChain; number += 7 {
		block := chain[number]
		at := hexutil.EncodeUint64(uint64(number))
		compare("eth_getBlockByHash", block.Hash(), true)
		compare("eth_getBlockReceipts", at)
		compare("eth_getLogs", map[string]any{"fromBlock": at, "toBlock": hexutil.EncodeUint64(uint64(min(number+6, windowChain)))})
		for _, tx := range block.Transactions() {
			compare("eth_getTransactionReceipt", tx.Hash())
		}
	}
	for number := firstState; number <= windowChain; number += 3 {
		at, who := hexutil.EncodeUint64(uint64(number)), receiver(chain[number])
		compare("eth_getBalance", who, at)
		compare("eth_getProof", who, []string{"0x0", "0x1"}, at)
		compare("eth_getProof", receiver(chain[number-firstState+1]), []string{}, at)
		if number > firstState {
			compare("debug_traceBlockByNumber", at, map[string]any{"tracer": "callTracer"})
		}
	}
	var earliest struct{ Number string }
	if err := json.Unmarshal([]byte(ask(got, "eth_getBlockByNumber", "earliest", false)), &earliest); err != nil || earliest.Number != hexutil.EncodeUint64(firstBlock) {
		t.Errorf("the earliest block is %s, %v, expected %d", earliest.Number, err, firstBlock)
	}
	var capabilities map[string]struct{ OldestBlock string }
	if err := json.Unmarshal([]byte(ask(got, "eth_capabilities")), &capabilities); err != nil {
		t.Error(err)
	}
	for name, oldest := range map[string]uint64{"state": firstState, "blocks": firstBlock, "receipts": firstBlock, "logs": firstBlock} {
		if capabilities[name].OldestBlock != hexutil.EncodeUint64(oldest) {
			t.Errorf("eth_capabilities of %s: %+v, expected blocks from %d on", name, capabilities[name], oldest)
		}
	}
	before, stateBefore := hexutil.EncodeUint64(firstBlock-1), hexutil.EncodeUint64(firstState-1)
	for _, refused := range [][]any{
		{"eth_getBalance", receiver(chain[1]), stateBefore},
		{"eth_getProof", receiver(chain[1]), []string{}, stateBefore},
		{"debug_traceBlockByNumber", stateBefore, map[string]any{"tracer": "callTracer"}},
		{"eth_getBlockByNumber", before, false},
		{"eth_getBlockReceipts", before},
		{"eth_getLogs", map[string]any{"fromBlock": before, "toBlock": before}},
	} {
		if !pruned(t, got, refused[0].(string), refused[1:]...) {
			t.Errorf("%v is not refused as pruned", refused)
		}
	}
}

// compareSize compares what two keyspaces take on the node after it has compacted them, and
// dropped the marks of removed rows. It ends the node.
func compareSize(t *testing.T, windowed, fresh string) {
	t.Helper()
	cluster := one.Get(t)
	if !cluster.Started() {
		t.Log("the node is not the test's own: sizes are not compared")
		return
	}
	var sizes [2]int64
	for _, keyspace := range []string{windowed, fresh} {
		if err := errors.Join(cluster.EndGrace(t.Context(), 0, keyspace), cluster.Compact(t.Context(), 0, keyspace)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Terminate(0); err != nil {
		t.Fatal(err)
	}
	for i, keyspace := range []string{windowed, fresh} {
		var err error
		if sizes[i], err = cluster.StoredBytes(0, keyspace); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("compacted, the window takes %d bytes, a new archive of it %d", sizes[0], sizes[1])
	if sizes[0] > sizes[1]*115/100 {
		t.Errorf("the window takes %d bytes, expected at most 15%% more than %d", sizes[0], sizes[1])
	}
}
