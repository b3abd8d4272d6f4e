package follow

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	senders    = 20
	perRound   = 400 // transactions
	batchCalls = 50
)

// roundsFlag is a package variable, since package testing parses the flags of tests.
var roundsFlag = flag.Int("rounds", 5, "how many `times` blocks are made before geth is wound back")

// counter increments its slot 0 whenever it is called, and logs the value as a topic.
var counter = common.HexToAddress("0x00000000000000000000000000000000c0c0c0c0")

const counterCode = "0x600160005401600055600054" + "60006000a100"

// startAshlar starts the service, given only the genesis and the node's URL.
func startAshlar(t *testing.T, genesis string, sources ...string) (node.Ashlar, *node.Process, *node.Client) {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  dev:\n    genesis: %s\n    source: [%q]\n", genesis, strings.Join(sources, `", "`))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "dev", Config: config}
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a, p, client
}

// TestFollowGeth follows a geth that makes blocks with thousands of transactions and is wound back
// repeatedly, while clients receive notifications and send requests without pause.
func TestFollowGeth(t *testing.T) {
	u, genesis := startGeth(t, true)
	waiting := u.letWait()
	a, process, service := startAshlar(t, genesis, u.socket)
	awaitPooled(t, service, waiting)
	sendRefused(t, u, service)
	first, others := subscribe(t, service), startClients(t, service)
	missed := warmUp(t, u, service, first, others)

	asking, stop := context.WithCancel(t.Context())
	defer stop()
	asked := make(chan *answers, 1)
	go func() { asked <- new(answers).ask(asking, service) }()
	for range *roundsFlag {
		u.mine(perRound)
		if final, head := u.finalized(), u.head(); head > final {
			u.awaitIdle()
			awaitSameHead(t, service, u)
			u.record() // the last block may have no transactions
			u.windBack(max(final, head-min(head, 9)))
		}
	}
	u.mineAbove()
	awaitSameHead(t, service, u)
	u.record()
	stop()
	got := <-asked
	u.record() // geth may have included what a dropped block left over
	got.check(t, u.blocks)
	compare(t, service, u)
	checkAccessList(t, service)
	t.Logf("%d blocks made, %d on the chain; %s", len(u.blocks), u.head()+1, got)
	checkNotifications(t, u, first, others, missed)
	for _, c := range others {
		c.stop()
	}

	belowFinal(t, u, a, service)
	if err := process.Stop(); err != nil {
		t.Error(err)
	}
}

// checkAccessList holds that a head of Amsterdam has the access list that its header names.
func checkAccessList(t *testing.T, service *node.Client) {
	t.Helper()
	head := call[*types.Header](t, service, "eth_getBlockByNumber", "latest", false)
	if head.BlockAccessListHash == nil {
		t.Logf("the head, block %d, is of before Amsterdam", head.Number)
		return
	}
	list := call[hexutil.Bytes](t, service, "debug_getRawBlockAccessList", hexutil.EncodeBig(head.Number))
	if got := crypto.Keccak256Hash(list); got != *head.BlockAccessListHash {
		t.Errorf("block %d: an access list with the hash %s, want %s", head.Number, got, head.BlockAccessListHash)
	}
	t.Logf("the head, block %d, is of Amsterdam, slot %d", head.Number, *head.SlotNumber)
}

// mineAbove mines until the head has a new highest number, for clients that detect new heads by their
// number only, and until geth has nothing left of which it would make blocks later.
func (u *upstream) mineAbove() {
	u.t.Helper()
	var highest uint64
	for _, block := range u.blocks {
		highest = max(highest, block.number)
	}
	for u.mine(senders); u.head() <= highest || u.hasLeftOver(); {
		u.mine(senders)
	}
	u.awaitIdle()
}

// compare compares every block, its receipts and logs with geth's.
func compare(t *testing.T, client *node.Client, u *upstream) {
	t.Helper()
	for number := range u.head() + 1 {
		for _, question := range []struct {
			method string
			params []any
		}{
			{"debug_getRawBlock", []any{hexutil.Uint64(number)}},
			{"debug_getRawReceipts", []any{hexutil.Uint64(number)}},
			{"eth_getStorageAt", []any{counter, "0x0", hexutil.Uint64(number)}},
		} {
			got := call[json.RawMessage](t, client, question.method, question.params...)
			want := call[json.RawMessage](t, u.client, question.method, question.params...)
			if string(got) != string(want) {
				t.Errorf("%s of block %d differs:\n%s\n%s", question.method, number, got, want)
			}
		}
	}
	for _, tag := range []string{"safe", "finalized"} {
		await(t, tag+" to be as geth has it", func() bool { return tagged(t, client, tag) == tagged(t, u.client, tag) })
	}
}

// belowFinal winds geth back below its last finalized block: the service reports that it cannot follow,
// and keeps answering requests as before.
func belowFinal(t *testing.T, u *upstream, a node.Ashlar, client *node.Client) {
	t.Helper()
	for u.finalized() < 5 {
		u.mine(senders)
	}
	u.awaitIdle()
	awaitSameHead(t, client, u)
	before := call[json.RawMessage](t, client, "eth_getBlockByNumber", "latest", false)
	u.windBack(u.finalized() - 5)
	u.mine(perRound)
	await(t, "the status to say that geth cannot be followed", func() bool {
		text, err := a.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text, "below our last final block")
	})
	if after := call[json.RawMessage](t, client, "eth_getBlockByNumber", "latest", false); string(after) != string(before) {
		t.Errorf("the head has moved:\n%s\n%s", before, after)
	}
}
