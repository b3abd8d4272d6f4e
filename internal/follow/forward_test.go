package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// forward starts a service whose answers come from nodes, checked in some way.
func forward(t *testing.T, check, genesis string, quorum int, urls ...string) (node.Ashlar, *node.Client) {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entries := "poll: 100ms"
	if check == "state" {
		entries = "family: evm, genesis: " + genesis
	}
	upstream, _ := json.Marshal(urls) // cannot fail
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  dev: {upstream: %s, quorum: %d, check: %s, %s}\n", upstream, quorum, check, entries)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "dev", Config: config}
	p, client, err := a.Serve(context.WithoutCancel(t.Context())) // which ends before the cleanups run
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the service said:\n%s", p.Output())
		}
	})
	return a, client
}

// TestForwardGeth serves the answers of two geths with the same chain. One of them is ended for a while, the other
// one hangs for a while. The chain is wound back repeatedly. Clients get each log once, and those of dropped
// blocks as removed; Ponder indexes the chain meanwhile, and anvil forks it.
func TestForwardGeth(t *testing.T) {
	for _, test := range []struct {
		check  string
		quorum int
	}{{"none", 1}, {"headers", 2}, {"state", 1}} {
		t.Run(test.check, func(t *testing.T) { forwardGeth(t, test.check, test.quorum) })
	}
}

func forwardGeth(t *testing.T, check string, quorum int) {
	u, genesis := startGeth(t, false)
	second := startSecond(t, u, genesis)
	a, service := forward(t, check, genesis, quorum, u.client.URL, second.url)
	first, others := subscribe(t, service), startClients(t, service)
	index := startPonder(t, service, u)
	missed := warmUp(t, u, service, first, others)
	index.AwaitReady(t)

	asking, stop := context.WithCancel(t.Context())
	defer stop()
	asked := make(chan *answers, 1)
	go func() { asked <- (&answers{forwarded: true}).ask(asking, service) }()
	var forked *fork
	leaves, returns := 1, 2 // the rounds in which the second geth is ended and started again
	if quorum == 2 {
		returns = 1
	}
	for round := range 4 {
		if round == leaves {
			second.stop()
		}
		before := maps.Clone(u.blocks)
		u.mine(perRound / 4)
		if round == leaves && quorum == 2 {
			checkHeadStays(t, a, service, before)
		}
		if round == returns {
			second.start()
		}
		awaitSameHead(t, service, u)
		awaitPonder(t, index, u)
		final, head := u.finalized(), u.head()
		to := max(final, head-min(head, 4)) // less than a round adds: a lower head is followed late
		if forked == nil {
			forked = startFork(t, service, u, to)
		}
		forked.check(t, u, round)
		if to < head {
			u.awaitIdle()
			u.record()
			u.windBack(to)
		}
	}
	u.mineAbove()
	awaitSameHead(t, service, u)
	stop()
	got := <-asked
	u.record()
	got.check(t, u.blocks)
	t.Logf("%d blocks made, %d on the chain; %s", len(u.blocks), u.head()+1, got)
	checkNotifications(t, u, first, others, missed)
	checkPonder(t, index, u)
	sameAsGeth(t, service, u.client)
	second.awaitHead(u)
	checkHanging(t, service, u, second)
	for _, c := range others {
		c.stop()
	}
}

// checkHeadStays checks that the service shows none of the blocks that only the first geth has. Both had those of
// before.
func checkHeadStays(t *testing.T, a node.Ashlar, service *node.Client, before map[common.Hash]made) {
	t.Helper()
	await(t, "the status to say that the nodes do not agree", func() bool {
		text, err := a.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return disagreement.MatchString(text)
	})
	if shown := tagged(t, service, "latest"); before[shown.hash] == (made{}) {
		t.Errorf("the head is block %d (%#x), which only one node has", shown.number, shown.hash)
	}
}

// disagreement matches a status in which there is no quorum for a head.
var disagreement = regexp.MustCompile(`"agreement":\s*{\s*"quorum":\s*2,\s*"nodes":\s*0,\s*"since"`)

// awaitSameHead returns when the service has geth's head, which may move meanwhile.
func awaitSameHead(t *testing.T, service *node.Client, u *upstream) {
	t.Helper()
	await(t, "the same head", func() bool {
		u.record()
		return tagged(t, service, "latest") == tagged(t, u.client, "latest")
	})
}

// sameAsGeth compares every block, its receipts and the counter with geth's.
func sameAsGeth(t *testing.T, service, geth *node.Client) {
	t.Helper()
	for number := range tagged(t, geth, "latest").number + 1 {
		for _, question := range []struct {
			method string
			params []any
		}{
			{"eth_getBlockByNumber", []any{hexutil.Uint64(number), true}},
			{"eth_getBlockReceipts", []any{hexutil.Uint64(number)}},
			{"eth_getStorageAt", []any{counter, "0x0", hexutil.Uint64(number)}},
		} {
			got := call[any](t, service, question.method, question.params...)
			want := call[any](t, geth, question.method, question.params...)
			if block, ok := got.(map[string]any); ok && number == 0 {
				delete(block, "totalDifficulty") // a block of the archive has it
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s of block %d differs:\n%v\n%v", question.method, number, got, want)
			}
		}
	}
}
