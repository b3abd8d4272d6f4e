package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/fakenode"
	"ashlar/internal/node"
	"ashlar/kv"
	"ashlar/kv/cassandra/cassandratest"

	"github.com/ethereum/go-ethereum/core/types"
)

var faultTime = flag.Duration("faults", 20*time.Second, "how long nodes are taken away one at a time, at least once in each way (.ci/long: 10m); 0: not at all")

// blockTime is the time between two blocks of the chain that is followed.
const blockTime = time.Second

// TestFaults takes Cassandra's nodes away, one at a time, while a writer follows a chain and
// clients ask a reader. No read fails, every answer is that of a server with a data
// directory, the head does not go back, and nothing is lost. At the end it takes two nodes
// away: the reader refuses what it cannot read, and goes on when they are back.
//
// All processes share the processors of one machine. If it is busy, another node may get none
// for a while, so that there is no quorum. A witness sees that, and what fails then is counted
// apart.
func TestFaults(t *testing.T) {
	if *faultTime == 0 {
		t.Skip("needs the flag -faults with a duration")
	}
	cluster := nodes.Get(t)
	if !cluster.Started() {
		t.Skip("the nodes are not the test's own")
	}
	blocks := int(*faultTime/blockTime) + 400 // nodes are started until the end
	folder := generate(t, blocks, 5)
	f := &faulty{t: t, cluster: cluster, upstream: upstream{chain: readChain(t, folder)}}
	reference := local(t)
	importInto(t, reference, filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
	_, f.reference = serve(t, reference)
	var err error
	if f.Node, err = fakenode.New(fakenode.Options{ChainID: chainID(t, folder), Raw: true, Subscriptions: true}, f.chain[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	f.show(20)
	keyspace := newKeyspace(t)
	serve(t, process(t, keyspace, "writer", fmt.Sprintf("networks: {%s: {genesis: %s, source: %q, pool: none}}", network, filepath.Join(folder, "genesis.json"), f.SocketURL())))
	// Without a cache worth the name, so that answers come from Cassandra.
	f.process, f.reader = serve(t, process(t, keyspace, "reader", "cache: 1MiB"))
	awaitHead(t, f.reader, f.chain[20])
	f.head.Store(20)
	f.shown.Store(20)
	if f.witness, err = cassandratest.NewWitness(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	defer f.watchMachine()()
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { f.grow(ctx) })
	working.Go(func() { f.watch(ctx) })
	for range 4 {
		working.Go(func() { f.ask(ctx) })
	}
	f.breakNodes(*faultTime)
	stop()
	working.Wait()
	last := f.chain[f.shown.Load()]
	awaitHead(t, f.reader, last)
	t.Logf("%v: %d kills, %d pauses, %d restarts; %d answers compared, %d heads seen up to block %d, %d of them while a node was away", *faultTime,
		f.kills, f.pauses, f.restarts, f.answers.Load(), f.heads, last.NumberU64(), f.moved)
	t.Logf("the machine was too busy in %.1f%% of the time: %d reads failed then, and the head stood still in %d faults",
		100*f.witness.Share(), f.starved.Load(), f.starvedStill)
	f.loseTwo()
	report, err := process(t, keyspace, "reader").Verify(t.Context())
	if err != nil || !strings.Contains(report, "sound") {
		t.Errorf("verify: %s, %v", report, err)
	}
	for number := range last.NumberU64() + 1 {
		within(t, fmt.Sprintf("block %d is answered", number), func() bool {
			return f.compare("eth_getBlockByNumber", fmt.Sprintf("0x%x", number), true)
		})
	}
}

// watchMachine has the witness watch until the returned function is called.
func (f *faulty) watchMachine() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { f.witness.Run(ctx) })
	watching.Go(func() {
		f.witness.Watch(ctx, "the reader", func(ctx context.Context) error {
			var version string
			return f.reader.Call(ctx, &version, "web3_clientVersion")
		})
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// faulty is a cluster whose nodes are taken away.
type faulty struct {
	t       *testing.T
	cluster *cassandratest.Cluster
	upstream
	reference, reader *node.Client
	process           *node.Process // the reader's
	witness           *cassandratest.Witness

	shown   atomic.Int64 // the upstream node's head
	head    atomic.Int64 // the reader's
	answers atomic.Int64
	heads   int

	kills, pauses, restarts int
	moved                   int64 // blocks by which the head moved during faults

	// What is explained by other nodes that did not answer: the machine was busy.
	starved      atomic.Int64 // reads that failed
	starvedStill int          // faults during which the head did not move
}

// lookBack is how long before a read that fails a node may have been kept from answering:
// what the reader knew of the others was too old when the read began.
const lookBack = 3 * time.Second

// fail reports what failed at a time, unless the machine was too busy.
func (f *faulty) fail(began time.Time, format string, args ...any) {
	what := fmt.Sprintf("%s, %v after it began", fmt.Sprintf(format, args...), time.Since(began).Round(time.Millisecond))
	if why := f.witness.Starved(began.Add(-lookBack), time.Now()); why != "" {
		f.starved.Add(1)
		f.t.Logf("%s: %s", what, why)
		return
	}
	f.t.Errorf("%s: %s", time.Now().Format("15:04:05.000"), what)
}

// mostAhead is how many blocks the node may be ahead of the reader on a slow machine.
const mostAhead = 20

// grow makes the chain that is followed longer.
func (f *faulty) grow(ctx context.Context) {
	tick := time.NewTicker(blockTime)
	defer tick.Stop()
	for number := 21; number < len(f.chain); {
		if int64(number) <= f.head.Load()+mostAhead {
			f.show(number)
			f.shown.Store(int64(number))
			number++
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watch checks that the reader's head does not go back.
func (f *faulty) watch(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		number, hash, err := head(f.t, f.reader)
		switch before := f.head.Load(); {
		case err != nil:
			f.fail(began, "head: %v", err)
		case int64(number) < before:
			f.t.Errorf("the head went back from %d to %d", before, number)
		case hash != f.chain[number].Hash().Hex():
			f.t.Errorf("head %d is %s, expected %s", number, hash, f.chain[number].Hash())
		case int64(number) > before:
			f.heads++
			f.head.Store(int64(number))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// askEvery is the time between two questions of one client. Without it the clients take all
// processors, and a node that is started again gets hardly any.
const askEvery = 40 * time.Millisecond

// ask asks the reader questions and compares the answers.
func (f *faulty) ask(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(askEvery) {
		number := 1 + rand.IntN(int(f.head.Load()))
		block := f.chain[number]
		at, tx := fmt.Sprintf("0x%x", number), transactionOf(block)
		if tx == nil {
			continue
		}
		switch rand.IntN(7) {
		case 0:
			f.compare("eth_getBlockByNumber", at, true)
		case 1:
			f.compare("eth_getBlockReceipts", at)
		case 2:
			f.compare("eth_getLogs", map[string]any{"fromBlock": fmt.Sprintf("0x%x", max(1, number-5)), "toBlock": at})
		case 3:
			f.compare("eth_getTransactionByHash", tx.Hash())
		case 4:
			f.compare("eth_getTransactionReceipt", tx.Hash())
		case 5:
			f.compare("eth_getBalance", tx.To(), at)
		case 6:
			f.compare("eth_getProof", tx.To(), []string{}, at)
		}
	}
}

// transactionOf returns a transaction of a block that has a recipient, nil if there is none.
func transactionOf(block *types.Block) *types.Transaction {
	all := block.Transactions()
	for _, i := range rand.Perm(len(all)) {
		if all[i].To() != nil {
			return all[i]
		}
	}
	return nil
}

// compare compares an answer of the reader with that of the reference. It returns whether
// there was one.
func (f *faulty) compare(method string, params ...any) bool {
	var got, want json.RawMessage
	began := time.Now()
	if err := f.reader.Call(f.t.Context(), &got, method, params...); err != nil {
		f.fail(began, "%s %v: %v", method, params, err)
		return false
	}
	if err := f.reference.Call(f.t.Context(), &want, method, params...); err != nil {
		f.t.Errorf("reference: %s %v: %v", method, params, err)
		return true
	}
	if !bytes.Equal(got, want) {
		f.t.Errorf("%s %v: %.300s, expected %.300s", method, params, got, want)
	}
	f.answers.Add(1)
	return true
}

// stillAtMost is how long the head may stand still while a node hangs. The others go on asking it
// until their reads of it have timed out, 5 s later, and wait up to 0.1 s for each; blocks that the
// writer is behind with are published up to 16 at once, with hundreds of reads one after the other.
const stillAtMost = 15 * time.Second

// breakNodes takes one node after the other away, in all ways in turn.
func (f *faulty) breakNodes(d time.Duration) {
	var order []int
	for n, end := 0, time.Now().Add(d); n < len(faults) || time.Now().Before(end); n++ {
		if n%len(faults) == 0 {
			order = rand.Perm(len(faults))
		}
		i, before, began := rand.IntN(cassandratest.Count), f.head.Load(), time.Now()
		f.witness.Away(i)
		what, err := faults[order[n%len(faults)]](f, i)
		if err != nil {
			f.t.Fatal(err)
		}
		moved := f.head.Load() - before
		f.moved += moved
		lasted := time.Since(began)
		f.t.Logf("%s: node %d: %s for %v, head moved by %d", began.Format("15:04:05.000"), i, what, lasted.Round(time.Millisecond), moved)
		if moved == 0 && lasted > stillAtMost {
			if why := f.witness.Starved(began, time.Now()); why != "" {
				f.starvedStill++
				f.t.Logf("the head stood still: %s", why)
			} else {
				f.t.Errorf("the head stood still in the fault")
			}
		}
		f.await(i)
	}
}

// faults take a node away for some time.
var faults = [...]func(f *faulty, i int) (what string, err error){(*faulty).kill, (*faulty).pause, (*faulty).restart}

func (f *faulty) kill(i int) (what string, err error) {
	f.kills++
	err = firstOf(f.cluster.KeepSchema(f.t.Context(), i), f.cluster.Kill(i))
	time.Sleep(2*time.Second + rand.N(5*time.Second))
	return "killed", firstOf(err, f.cluster.Restart(i))
}

func (f *faulty) pause(i int) (what string, err error) {
	f.pauses++
	err = f.cluster.Pause(i)
	time.Sleep(2*time.Second + rand.N(10*time.Second))
	return "paused", firstOf(err, f.cluster.Resume(i))
}

func (f *faulty) restart(i int) (what string, err error) {
	f.restarts++
	return "restarted", firstOf(f.cluster.Terminate(i), f.cluster.Restart(i))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until a node takes part again.
func (f *faulty) await(i int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	if err := f.witness.Back(ctx, i); err != nil {
		f.t.Fatal(err)
	}
}

// loseTwo takes two nodes away, and gives them back.
func (f *faulty) loseTwo() {
	f.t.Helper()
	f.witness.Away(1)
	f.witness.Away(2)
	if err := firstOf(f.cluster.Pause(1), f.cluster.Pause(2)); err != nil {
		f.t.Fatal(err)
	}
	question := func() (status int, retryAfter string) {
		// Each question is about another account, so that no answer is in the cache.
		body, err := node.Request(1, "eth_getBalance", fmt.Sprintf("0x%040x", rand.Uint64()), "latest")
		if err != nil {
			f.t.Fatal(err)
		}
		return f.http(f.reader.URL, body)
	}
	ready := f.reader.URL[:strings.Index(f.reader.URL[len("http://"):], "/")+len("http://")] + "/readyz"
	within(f.t, "a question is refused with 503 and Retry-After", func() bool {
		status, retryAfter := question()
		return status == http.StatusServiceUnavailable && retryAfter != ""
	})
	within(f.t, "the reader is not ready", func() bool {
		status, _ := f.http(ready, nil)
		return status == http.StatusServiceUnavailable
	})
	within(f.t, "the log says why", func() bool { return strings.Contains(f.process.Output(), kv.ErrUnavailable.Error()) })
	if err := firstOf(f.cluster.Resume(1), f.cluster.Resume(2)); err != nil {
		f.t.Fatal(err)
	}
	within(f.t, "a question is answered again", func() bool { status, _ := question(); return status == http.StatusOK })
	within(f.t, "the reader is ready again", func() bool { status, _ := f.http(ready, nil); return status == http.StatusOK })
	f.await(1)
	f.await(2)
}

// http sends a request, and returns the status and the header Retry-After.
func (f *faulty) http(url string, body []byte) (status int, retryAfter string) {
	f.t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(f.t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get("Retry-After")
}
