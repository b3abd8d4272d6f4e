package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/fakenode"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// TestReaders has three readers of one writer, whose chain is reorganized. All push the same
// to their subscribers and have the same for their filters. Meanwhile a client that asks
// them in turn never sees a head before one that it has seen.
func TestReaders(t *testing.T) {
	const count, shared = 3, 4
	genesis, blocks := ingesttest.Crossing(t)
	first := genesis.ToBlock()
	a, b := append([]*types.Block{first}, blocks...), append([]*types.Block{first}, ingesttest.Diverging(t, shared)...)
	upstream, err := fakenode.New(fakenode.Options{ChainID: genesis.Config.ChainID.Uint64(), Raw: true, Subscriptions: true}, first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "genesis.json")
	text, err := json.Marshal(genesis)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	upstream.Set(a[:2], 0, 0)
	keyspace := newKeyspace(t)
	_, writer := serve(t, process(t, keyspace, "writer", fmt.Sprintf("networks: {%s: {genesis: %s, source: %q, pool: none}}", network, file, upstream.SocketURL())))
	awaitHead(t, writer, a[1])
	var all []*follower
	m := &mover{order: map[common.Hash]int{a[1].Hash(): 0}}
	for range count {
		_, reader := serve(t, process(t, keyspace, "reader"))
		awaitHead(t, reader, a[1])
		all = append(all, follow(t, reader))
		m.readers = append(m.readers, reader)
	}
	ctx, stop := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	moving.Go(func() { m.move(ctx, t) })
	var late time.Duration
	for i, step := range []struct {
		chain []*types.Block
		head  int
	}{{a, 2}, {a, 3}, {a, 4}, {a, 5}, {a, 6}, {b, 7}, {b, 8}, {a, 9}, {a, 10}, {b, 11}, {b, 12}} {
		head := step.chain[step.head]
		m.will(head.Hash(), i+1)
		upstream.Set(step.chain[:step.head+1], 0, 0)
		awaitHead(t, writer, head)
		began := time.Now()
		for _, f := range all {
			awaitHead(t, f.reader, head)
		}
		late = max(late, time.Since(began))
	}
	stop()
	moving.Wait()
	t.Logf("all readers showed each head at most %v after the writer; a client that moved asked %d times", late, m.asked)
	for i, f := range all {
		heads, logs := f.wait(t, b[12].Hash())
		if i > 0 {
			same(t, "heads", i, heads, all[0].heads)
			same(t, "logs", i, logs, all[0].logs)
		}
		same(t, "the block filter", i, f.poll(t, f.blockFilter), heads)
		if polled := f.poll(t, f.logFilter); len(polled) != len(logs) {
			t.Errorf("reader %d: the filter has %d logs, %d were pushed", i, len(polled), len(logs))
		}
		same(t, "pending", i, f.pending(t), all[0].pending(t))
	}
	if !slices.ContainsFunc(all[0].logs, func(l string) bool { return strings.HasSuffix(l, "true") }) {
		t.Error("no log was removed: the test shows nothing")
	}
	checkRevoked(t, process(t, keyspace, "reader"), m.readers)
}

// same compares what a reader has with what is expected.
func same(t *testing.T, what string, reader int, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("reader %d: %s: %q, expected %q", reader, what, got, want)
	}
}

// mover is a client that asks readers in turn.
type mover struct {
	readers []*node.Client
	asked   int

	mu    sync.Mutex
	order map[common.Hash]int // guarded by mu; of all heads
}

// will says which head comes next.
func (m *mover) will(head common.Hash, order int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order[head] = order
}

func (m *mover) move(ctx context.Context, t *testing.T) {
	seen, by := 0, 0
	for ctx.Err() == nil {
		i := m.asked % len(m.readers)
		m.asked++
		_, hash, err := head(t, m.readers[i])
		if err != nil {
			t.Errorf("reader %d: %v", i, err)
			continue
		}
		m.mu.Lock()
		order, known := m.order[common.HexToHash(hash)]
		m.mu.Unlock()
		if !known || order < seen {
			t.Errorf("reader %d has head %s, number %d of the upstream's, after reader %d had number %d", i, hash, order, by, seen)
		}
		seen, by = order, i
	}
}

// follower receives what a reader pushes.
type follower struct {
	reader                 *node.Client
	blockFilter, logFilter string

	mu          sync.Mutex
	heads, logs []string // guarded by mu while they are received
}

func follow(t *testing.T, reader *node.Client) *follower {
	t.Helper()
	f := &follower{reader: reader}
	connection, err := rpc.DialContext(t.Context(), node.SocketURL(reader.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	heads, logs := make(chan *types.Header, 64), make(chan types.Log, 64)
	for channel, arguments := range map[any][]any{heads: {"newHeads"}, logs: {"logs", map[string]any{}}} {
		if _, err := connection.EthSubscribe(t.Context(), channel, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			select {
			case head := <-heads:
				f.add(&f.heads, head.Hash().Hex())
			case log := <-logs:
				f.add(&f.logs, fmt.Sprint(log.BlockHash.Hex(), log.Index, log.Removed))
			case <-t.Context().Done():
				return
			}
		}
	}()
	f.call(t, &f.blockFilter, "eth_newBlockFilter")
	f.call(t, &f.logFilter, "eth_newFilter", map[string]any{})
	return f
}

func (f *follower) add(to *[]string, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*to = append(*to, what)
}

func (f *follower) call(t *testing.T, result any, method string, params ...any) {
	t.Helper()
	if err := patiently(t, f.reader, result, method, params...); err != nil {
		t.Fatal(err)
	}
}

// wait returns what was pushed, once that ends with a head, and with the logs of its block.
func (f *follower) wait(t *testing.T, last common.Hash) (heads, logs []string) {
	t.Helper()
	var in []json.RawMessage
	f.call(t, &in, "eth_getLogs", map[string]any{"blockHash": last})
	within(t, "the last head and its logs are pushed", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for _, log := range f.logs {
			if strings.HasPrefix(log, last.Hex()) {
				n++
			}
		}
		return len(f.heads) > 0 && f.heads[len(f.heads)-1] == last.Hex() && n == len(in)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heads, f.logs
}

// poll returns what a filter has.
func (f *follower) poll(t *testing.T, filter string) (all []string) {
	t.Helper()
	var changes []json.RawMessage
	f.call(t, &changes, "eth_getFilterChanges", filter)
	for _, change := range changes {
		all = append(all, strings.Trim(string(change), `"`))
	}
	return all
}

// pending returns what the reader says of the pending block.
func (f *follower) pending(t *testing.T) []string {
	t.Helper()
	var block struct{ Number, ParentHash string }
	var nonce string
	f.call(t, &block, "eth_getBlockByNumber", "pending", false)
	f.call(t, &nonce, "eth_getTransactionCount", common.Address{1}, "pending")
	return []string{block.Number, block.ParentHash, nonce}
}

// checkRevoked revokes a key that several readers accept.
func checkRevoked(t *testing.T, shell node.Ashlar, readers []*node.Client) {
	t.Helper()
	key, err := shell.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var clients []*node.Client
	for _, r := range readers {
		clients = append(clients, node.NewClient(r.URL[:strings.LastIndex(r.URL, "/")+1]+key))
	}
	accepted := func(c *node.Client) bool { _, _, err := head(t, c); return err == nil }
	for i, c := range clients {
		within(t, fmt.Sprintf("reader %d accepts the key", i), func() bool { return accepted(c) })
	}
	if err := shell.RevokeKey(t.Context(), keyID(key)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	within(t, "all readers refuse the key", func() bool { return !slices.ContainsFunc(clients, accepted) })
	t.Logf("%d readers refused a key %v after it was revoked", len(clients), time.Since(began))
}
