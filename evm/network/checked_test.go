package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/proven"
	"ashlar/evm/query"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"
	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// logged is a log as filters return it.
type logged struct {
	BlockHash common.Hash
	LogIndex  string
	Removed   bool
}

// Nodes that wind back take the head with them: filters get the logs of the blocks that are
// dropped as removed, newest block first, and then those of the new branch.
func TestCheckedReorganization(t *testing.T) {
	right, wrong, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	a, b := startNode(t, genesis, receipts, right), startNode(t, genesis, receipts, right)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(a, b), Quorum: 2})
	s.await(right[len(right)-1])
	var logs, blocks string
	s.call(&logs, "eth_newFilter", `[{}]`)
	s.call(&blocks, "eth_newBlockFilter", `[]`)
	a.Set(wrong, 0, 0) // one of two: no agreement
	b.Set(wrong, 0, 0)
	s.await(wrong[len(wrong)-1])

	var changes []logged
	var hashes, want []common.Hash
	for _, block := range wrong[5:] {
		want = append(want, block.Hash())
	}
	for end := time.Now().Add(await.Patience); len(hashes) < len(want) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var more []common.Hash // blocks are published one after the other
		s.call(&more, "eth_getFilterChanges", fmt.Sprintf("[%q]", blocks))
		hashes = append(hashes, more...)
	}
	if !slices.Equal(hashes, want) {
		t.Errorf("the new blocks are %v, want %v", hashes, want)
	}
	s.call(&changes, "eth_getFilterChanges", fmt.Sprintf("[%q]", logs))
	expect := expectedLogs(receipts, right, true, len(right)-1, 4)
	if len(expect) == 0 {
		t.Fatal("the dropped blocks have no logs")
	}
	expect = append(expect, expectedLogs(receipts, wrong, false, 5, len(wrong))...)
	if !slices.Equal(changes, expect) {
		t.Errorf("there are %d logs, want %d of which the first is %v", len(changes), len(expect), expect[0])
	}
}

// expectedLogs returns the logs of the blocks of a chain from one to before another.
func expectedLogs(receipts func(common.Hash) types.Receipts, chain []*types.Block, removed bool, from, to int) (all []logged) {
	step := 1
	if to < from {
		step = -1
	}
	for number := from; number != to; number += step {
		index := 0
		var ofBlock []logged
		for _, receipt := range receipts(chain[number].Hash()) {
			for range receipt.Logs {
				ofBlock = append(ofBlock, logged{chain[number].Hash(), fmt.Sprintf("%#x", index), removed})
				index++
			}
		}
		if removed {
			slices.Reverse(ofBlock)
		}
		all = append(all, ofBlock...)
	}
	return all
}

// While a network that executes blocks is far behind, its head is that of the nodes that answer.
// Once it has caught up clients see its own head, and no log is missed or given twice.
func TestCheckedCatchesUp(t *testing.T) {
	genesis, blocks, receipts := manyBlocks(t)
	const begun, behind = 2, 3
	if ingesttest.ChainBlocks < behind+query.CatchUpBlocks+2 {
		t.Fatalf("%d blocks are too few", ingesttest.ChainBlocks)
	}
	last := len(blocks) - 1
	source, answering := startNode(t, genesis, receipts, blocks[:behind+1]), startNode(t, genesis, receipts, blocks[:last])
	s := serveChecked(t, genesis, blocks[1:begun+1], &Entries{Source: family.Sources{source.URL()}, Upstream: nodesOf(answering), Quorum: 1})
	s.await(blocks[last-1])
	var number string
	if got := s.call(&number, "eth_blockNumber", "[]"); got != jsonrpc.Unverified {
		t.Errorf("a head that nodes name is %s", got)
	}
	var block map[string]any
	if got := s.call(&block, "eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, begun)); got != jsonrpc.Executed {
		t.Errorf("a block that was executed is %s", got)
	}
	if got := s.call(&block, "eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, last-2)); got != jsonrpc.Proven {
		t.Errorf("a block that was not executed is %s", got)
	}
	var filter string
	s.call(&filter, "eth_newFilter", "[{}]")
	source.Set(blocks, 0, 0)
	s.await(blocks[last])
	for end := time.Now().Add(await.Patience); s.call(&number, "eth_blockNumber", "[]") != jsonrpc.Executed; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("clients do not see the executed head")
		}
	}
	if got := s.call(&block, "eth_getBlockByNumber", `["latest",false]`); got != jsonrpc.Executed {
		t.Errorf("the head is %s", got)
	}
	var changes []logged
	want := expectedLogs(receipts, blocks, false, last, last+1)
	for end := time.Now().Add(await.Patience); len(changes) < len(want) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var more []logged
		s.call(&more, "eth_getFilterChanges", fmt.Sprintf("[%q]", filter))
		changes = append(changes, more...)
	}
	if len(want) == 0 || !slices.Equal(changes, want) {
		t.Errorf("there are %d logs, want %d", len(changes), len(want))
	}
}

// Calls that may wait for nodes leave slots to the light calls of other networks.
func TestCheckedCallsMayWait(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(startNode(t, genesis, receipts, right)), Quorum: 1})
	for method := range s.described.All() {
		if light := method.Cost.Weight == jsonrpc.LightWeight; light != slices.Contains(headless, method.Name) {
			t.Errorf("%s is light: %t", method.Name, light)
		}
	}
}

// A consensus client names the head of a network that executes nothing. It hears that every
// block is not executed.
func TestCheckedByConsensus(t *testing.T) {
	right, wrong, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	answering := startNode(t, genesis, receipts, right)
	entries := &Entries{Upstream: nodesOf(answering), Quorum: 1, Engine: Engine{Listen: "127.0.0.1:0"}}
	s := serveChecked(t, genesis, nil, entries)
	api := s.network.(*network).checked.api.Methods()
	update := func(head *types.Block) {
		t.Helper()
		params := fmt.Sprintf(`[{"headBlockHash":%q,"safeBlockHash":%q,"finalizedBlockHash":%q}]`, head.Hash(), right[2].Hash(), right[2].Hash())
		answer, err := api["engine_forkchoiceUpdatedV3"](t.Context(), []byte(params), nil)
		if want := `{"payloadStatus":{"status":"SYNCING","latestValidHash":null,"validationError":null},"payloadId":null}`; err != nil || string(answer) != want {
			t.Fatalf("%s, %v, want %s", answer, err, want)
		}
	}
	update(right[8])
	s.await(right[8])
	var finalized struct{ Hash common.Hash }
	s.call(&finalized, "eth_getBlockByNumber", `["finalized",false]`)
	if finalized.Hash != right[2].Hash() {
		t.Errorf("the finalized block is %s, want %s", finalized.Hash, right[2].Hash())
	}
	answering.Set(wrong, 0, 0) // it has the blocks of both branches
	update(wrong[9])
	s.await(wrong[9])
	update(right[7])
	s.await(right[7])
}

// A transaction is checked here before nodes get it, goes to several of them, and counts for the
// pending nonce of its sender.
func TestCheckedTakesTransactions(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	last := len(right) - 1
	a, b := startNode(t, genesis, receipts, right[:last]), startNode(t, genesis, receipts, right[:last])
	s := serveChecked(t, genesis, right[1:last], &Entries{Upstream: nodesOf(a, b), Quorum: 2})
	s.await(right[last-1])
	encode := func(tx *types.Transaction) string {
		t.Helper()
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("[%q]", hexutil.Encode(raw))
	}
	refuse := func(tx *types.Transaction, want string) {
		t.Helper()
		var hash common.Hash
		if _, err := s.try(&hash, "eth_sendRawTransaction", encode(tx)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	next := right[last].Transactions()[0]
	sender, err := types.Sender(types.LatestSigner(genesis.Config), next)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(await.Patience); ; time.Sleep(5 * time.Millisecond) { // until the pool has a head
		var hash common.Hash
		_, err := s.try(&hash, "eth_sendRawTransaction", encode(next))
		if err == nil && hash == next.Hash() {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	refuse(right[last-1].Transactions()[0], "nonce too low")
	for _, node := range []*fakenode.Node{a, b} {
		for end := time.Now().Add(await.Patience); len(node.Waiting()) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		if waiting := node.Waiting(); len(waiting) != 1 || waiting[0].Hash() != next.Hash() {
			t.Errorf("a node has the transactions %v, want one, %s", waiting, next.Hash())
		}
	}
	refuse(next, "already known") // by both nodes
	var nonce hexutil.Uint64
	verified := s.call(&nonce, "eth_getTransactionCount", fmt.Sprintf(`[%q,"pending"]`, sender))
	if uint64(nonce) != next.Nonce()+1 || verified != jsonrpc.Unverified {
		t.Errorf("the pending nonce is %d, %s, want %d, %s", nonce, verified, next.Nonce()+1, jsonrpc.Unverified)
	}
	bySender := func(nonce uint64, want jsonrpc.Verification) {
		t.Helper()
		var tx struct{ Nonce hexutil.Uint64 }
		got := s.call(&tx, "eth_getTransactionBySenderAndNonce", fmt.Sprintf(`[%q,"%#x"]`, sender, nonce))
		if got != want || uint64(tx.Nonce) != nonce {
			t.Errorf("nonce %d of %s: nonce %d, %s, want %s", nonce, sender, tx.Nonce, got, want)
		}
	}
	bySender(next.Nonce(), jsonrpc.Unverified)
	bySender(0, jsonrpc.Executed)
	second := slices.IndexFunc(right[last].Transactions(), func(tx *types.Transaction) bool {
		from, err := types.Sender(types.LatestSigner(genesis.Config), tx)
		return err == nil && tx != next && from != sender && tx.Type() != types.BlobTxType
	})
	waited := make(chan error, 1)
	var receipt struct{ BlockHash common.Hash }
	go func() {
		_, err := s.try(&receipt, "eth_sendRawTransactionSync", encode(right[last].Transactions()[second]))
		waited <- err
	}()
	for end := time.Now().Add(await.Patience); len(a.Waiting()) < 2 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	a.Set(right, 0, 0)
	b.Set(right, 0, 0)
	if err := <-waited; err != nil || receipt.BlockHash != right[last].Hash() {
		t.Errorf("the receipt is of block %s, %v, want %s", receipt.BlockHash, err, right[last].Hash())
	}
}

// The pool runs once there is a head, although all nodes are set aside before.
func TestPoolWaitsWhileNodesAreAside(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, nil)
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *upstream.Pool {
		config := upstream.Config{Nodes: nodesOf(startNode(t, genesis, receipts, right)), ChainID: genesis.Config.ChainID.Uint64(), Log: slog.New(slog.DiscardHandler)}
		nodes, err := upstream.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	asked, watched := open(), open()
	remote := proven.New(proven.Config{Nodes: watched, Chain: genesis.Config, Genesis: right[0].Hash(), Archive: a})
	unexecuted, err := proven.OpenTip(t.Context(), chain.Ref{Hash: right[0].Hash()})
	if err != nil {
		t.Fatal(err)
	}
	asked.SetAside(asked.Status()[0].Name, upstream.ErrLie)
	ran := make(chan struct{})
	c := &checked{
		nodes:   asked,
		head:    proven.NewHead(remote, unexecuted, proven.HeadConfig{Watcher: watched, Quorum: 1, Log: slog.New(slog.DiscardHandler)}),
		runPool: func(context.Context) error { close(ran); return nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := c.run(ctx); err != nil {
			t.Error(err)
		}
	})
	for err := error(nil); err == nil || !strings.Contains(err.Error(), "set aside"); time.Sleep(5 * time.Millisecond) {
		waiting, done := context.WithTimeout(t.Context(), await.Patience)
		if err = c.await(waiting); waiting.Err() != nil {
			t.Fatal(err)
		}
		done()
	}
	running.Go(func() {
		if err := watched.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	await.Receive(t, "the pool to run, now that there is a head", ran)
}

// The error about an address that is in use names the entry of the configuration.
func TestEngineAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	methods, err := jsonrpc.NewMethods()
	if err != nil {
		t.Fatal(err)
	}
	n := &network{entries: &Entries{Engine: Engine{Listen: taken.Addr().String()}}}
	s := family.Service{Name: "test", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }}
	_, err = n.listen(t.Context(), s, methods, newEngineAPI(nil, params.AllDevChainProtocolChanges, family.Version{}, nil))
	if want := "engine: listen: " + taken.Addr().String() + " is used by another network or process: expected an address of its own"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// A client whose transaction a node may have taken is told so, and not that none took it.
func TestCheckedTransactionMayBeTaken(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"no answer": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "no node confirmed the transaction: one broke off before its answer and may have taken it: sending the same transaction again is harmless"},
		"refused":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "no node took the transaction: no upstream can answer: try again later"},
	} {
		right, _, receipts := crossings(t)
		genesis, _ := ingesttest.Crossing(t)
		node := startNode(t, genesis, receipts, right)
		to, err := url.Parse(node.URL())
		if err != nil {
			t.Fatal(err)
		}
		honest := httputil.NewSingleHostReverseProxy(to)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("eth_sendRawTransaction")) {
				c.answer(w)
				return
			}
			honest.ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		nodes, err := upstream.New(upstream.Config{Nodes: upstream.Nodes{{URL: proxy.URL}}, ChainID: genesis.Config.ChainID.Uint64(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = nodes.Run(ctx) })
		err = (&checked{nodes: nodes}).send(t.Context(), []byte{1})
		var sent *jsonrpc.Error
		if !errors.As(err, &sent) || sent.Code != jsonrpc.CodeServer || sent.Message != c.want {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
		stop()
		running.Wait()
	}
}
