//go:build unix

package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/fakenode"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// upstream is a node whose chain grows when the test says so.
type upstream struct {
	*fakenode.Node
	chain []*types.Block
}

const finality = 8 // blocks below the head that are final

// show makes block number the head.
func (u *upstream) show(number int) {
	final := uint64(max(number-finality, 0))
	u.Set(u.chain[:number+1], final, final)
}

// awaitHead waits until a server shows a block, and returns how long it took.
func awaitHead(t *testing.T, c *node.Client, want *types.Block) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(pollEvery) {
		number, hash, err := head(t, c)
		if err == nil && number == want.NumberU64() && hash == want.Hash().Hex() {
			return time.Since(began)
		}
		if time.Since(began) > await.Patience {
			t.Fatalf("after %v the head is %d %s, %v, expected %d %s", await.Patience, number, hash, err, want.NumberU64(), want.Hash())
		}
	}
}

// TestRoles follows a node by a writer, kills the writer, pauses the one that takes over,
// and has a reader show every head.
func TestRoles(t *testing.T) {
	folder := generate(t, 60, 8)
	u := &upstream{chain: readChain(t, folder)}
	var err error
	if u.Node, err = fakenode.New(fakenode.Options{ChainID: chainID(t, folder), Raw: true, Subscriptions: true}, u.chain[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	u.show(20)
	keyspace := newKeyspace(t)
	follow := fmt.Sprintf("networks: {%s: {genesis: %s, source: %q, pool: none}}", network, filepath.Join(folder, "genesis.json"), u.SocketURL())
	first, writer := serve(t, process(t, keyspace, "writer", follow))
	awaitHead(t, writer, u.chain[20])
	_, reader := serve(t, process(t, keyspace, "reader"))
	awaitHead(t, reader, u.chain[20])

	// A new head is at the reader soon after it is at the writer.
	var late time.Duration
	for number := 21; number <= 40; number++ {
		u.show(number)
		awaitHead(t, writer, u.chain[number])
		late = max(late, awaitHead(t, reader, u.chain[number]))
	}
	t.Logf("the reader showed each of 20 heads at most %v after the writer", late)

	checkPassed(t, process(t, keyspace, "reader", fmt.Sprintf("networks: {%s: {source: %q}}", network, u.SocketURL())), u, 41)

	// A standby waits, and takes over.
	standing := standby(t, keyspace, follow)
	first.Kill()
	killed := time.Now()
	u.show(41)
	awaitHead(t, reader, u.chain[41])
	t.Logf("the standby showed a new head %v after the writer was killed", time.Since(killed))

	// A writer that is paused loses the lease to the next standby, and ends when it wakes up.
	next := standby(t, keyspace, follow)
	signal(t, standing, syscall.SIGSTOP)
	u.show(45)
	awaitHead(t, reader, u.chain[45])
	signal(t, standing, syscall.SIGCONT)
	select {
	case <-standing.Done():
		if !strings.Contains(standing.Output(), "lease") {
			t.Errorf("a writer without lease ended by itself, with:\n%s", standing.Output())
		}
	case <-time.After(await.Patience):
		t.Error("a writer that was paused goes on without its lease")
	}
	u.show(60)
	awaitHead(t, reader, u.chain[60])
	if err := next.Stop(); err != nil {
		t.Error(err)
	}

	// The reader goes on without a writer. Nothing is lost, doubled or wrong.
	awaitHead(t, reader, u.chain[60])
	for number, block := range u.chain[:61] {
		var got struct{ Hash string }
		if err := patiently(t, reader, &got, "eth_getBlockByNumber", fmt.Sprintf("0x%x", number), true); err != nil || got.Hash != block.Hash().Hex() {
			t.Errorf("block %d: %s, %v, expected %s", number, got.Hash, err, block.Hash())
		}
	}
	report, err := process(t, keyspace, "reader").Verify(t.Context())
	if err != nil || !strings.Contains(report, "sound") {
		t.Errorf("verify: %s, %v", report, err)
	}
}

// checkPassed sends the first transaction of a block to a reader, which passes it to the
// node, and shows it as pending.
func checkPassed(t *testing.T, a node.Ashlar, u *upstream, number int) {
	t.Helper()
	p, reader := serve(t, a)
	defer p.Kill()
	tx := u.chain[number].Transactions()[0]
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var hash string
	within(t, "a reader takes a transaction", func() bool {
		return reader.Call(t.Context(), &hash, "eth_sendRawTransaction", hexutil.Encode(raw)) == nil
	})
	if waiting := u.Waiting(); len(waiting) != 1 || waiting[0].Hash() != tx.Hash() || hash != tx.Hash().Hex() {
		t.Errorf("the node has %d transactions, the answer is %s, expected %s", len(waiting), hash, tx.Hash())
	}
	within(t, "the transaction is pending", func() bool {
		var pending struct{ Hash, BlockHash *string }
		err := reader.Call(t.Context(), &pending, "eth_getTransactionByHash", tx.Hash())
		return err == nil && pending.Hash != nil && *pending.Hash == hash && pending.BlockHash == nil
	})
}

// standby starts a process that waits for the lease.
func standby(t *testing.T, keyspace, follow string) *node.Process {
	t.Helper()
	a := process(t, keyspace, "standby", follow, "listen: "+freeAddress(t))
	p, err := a.ServeBy(t.Context(), a.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for end := time.Now().Add(await.Patience); !strings.Contains(p.Output(), "waiting for the lease"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the standby does not wait:\n%s", p.Output())
		}
	}
	return p
}

func signal(t *testing.T, p *node.Process, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), s); err != nil {
		t.Fatal(err)
	}
}
