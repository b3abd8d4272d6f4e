package beaconnode

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/app"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

const (
	slotTime = 2 * time.Second
	// past is how many slots the chain has before the test: a period of sync committees, and
	// enough of the second for some of it to be final.
	past = 100
)

// network is a geth with a beacon node over it, and an Ashlar that has neither's trust.
type network struct {
	t       *testing.T
	geth    node.DrivenGeth
	beacon  *Node
	genesis string
	config  string
	ashlar  node.Ashlar
}

func start(t *testing.T) *network {
	t.Helper()
	bin, err := node.FindGeth()
	if err != nil {
		vectors.Missing(t, err.Error())
	}
	n := &network{t: t, genesis: filepath.Join(t.TempDir(), "genesis.json"), config: filepath.Join(t.TempDir(), "ashlar.yaml")}
	genesis := ingesttest.Genesis(t)
	rules := genesis.Config // up to Osaka, which comes with Fulu
	rules.BPO1Time, rules.BPO2Time, rules.BPO3Time, rules.BPO4Time, rules.BPO5Time, rules.AmsterdamTime = nil, nil, nil, nil, nil, nil
	text, err := json.Marshal(genesis)
	if err == nil {
		err = os.WriteFile(n.genesis, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	geth := node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme}
	if err := geth.Init(t.Context(), n.genesis); err != nil {
		t.Fatal(err)
	}
	if n.geth, err = geth.ServeEngine(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.geth.Kill)
	n.beacon = Start(t, Options{Engine: n.geth.Engine.URL, Secret: filepath.Join(geth.Data, "geth", "jwtsecret"), Public: n.geth.Public.URL, Slot: slotTime, Past: past})
	built, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n.ashlar = node.Ashlar{Bin: built, Data: t.TempDir(), Network: "test", Config: n.config}
	return n
}

// serve serves the network with some beacon nodes and a checkpoint. It returns a client, which
// need not have a head yet.
func (n *network) serve(checkpoint string, beacons ...string) (*node.Process, *node.Client) {
	n.t.Helper()
	text := fmt.Sprintf("networks:\n  test:\n    genesis: %s\n    check: state\n    upstream: %s\n    light_client: {nodes: [%s], checkpoint: \"%s\"}\n",
		n.genesis, n.geth.Public.URL, `"`+strings.Join(beacons, `", "`)+`"`, checkpoint)
	if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	p, client, err := n.ashlar.Serve(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.Kill)
	return p, client
}

// status returns what ashlar status says of the light client.
func (n *network) status() *family.LightClientStatus {
	n.t.Helper()
	text, err := n.ashlar.Status(n.t.Context())
	var all app.Status
	if err == nil {
		err = json.Unmarshal([]byte(text), &all)
	}
	if err != nil || len(all.Networks) != 1 || all.Networks[0].LightClient == nil {
		n.t.Fatalf("the status has no light client: %s, %v", text, err)
	}
	return all.Networks[0].LightClient
}

// await waits until something holds.
func (n *network) await(what string, p *node.Process, holds func() bool) {
	n.t.Helper()
	for end := time.Now().Add(await.Patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("waited in vain until %s: %+v\nits last words:\n%s", what, n.status(), p.Output())
		}
	}
}

// block is a block as clients see it.
type block struct {
	Number hexutil.Uint64
	Hash   common.Hash
}

func (n *network) block(c *node.Client, name string) (b block, err error) {
	return b, c.Call(n.t.Context(), &b, "eth_getBlockByNumber", name, false)
}

// follows waits until the head is one of geth's last blocks, and some block after the genesis is
// final. It returns both.
func (n *network) follows(p *node.Process, c *node.Client, after uint64) (head, final block) {
	n.t.Helper()
	n.await(fmt.Sprintf("the head is above block %d", after), p, func() bool {
		geth, err := n.block(n.geth.Public, "latest")
		if err != nil {
			n.t.Fatal(err)
		}
		var headErr, finalErr error
		head, headErr = n.block(c, "latest")
		final, finalErr = n.block(c, "finalized")
		return headErr == nil && finalErr == nil && uint64(head.Number) > after && head.Number+3 >= geth.Number && final.Number > 0
	})
	for _, b := range []block{head, final} {
		ours, err := n.block(n.geth.Public, hexutil.EncodeUint64(uint64(b.Number)))
		if err != nil || ours.Hash != b.Hash {
			n.t.Errorf("block %d is %#x, geth's is %#x, %v", b.Number, b.Hash, ours.Hash, err)
		}
	}
	return head, final
}

// A light client names the head of a chain that it verifies from a checkpoint, over a
// change of the sync committee. After a restart it continues from the last final block. Beacon nodes
// that lie are set aside and named, and hold nothing up.
func TestServe(t *testing.T) {
	n := start(t)
	// One gives another execution block, one another beacon block.
	liar := httptest.NewServer(&Liar{To: n.beacon.URL, From: regexp.MustCompile(`"block_hash": "0x.{4}`), By: `"block_hash": "0xdead`})
	defer liar.Close()
	forger := httptest.NewServer(&Liar{To: n.beacon.URL, From: regexp.MustCompile(`"parent_root": "0x.{4}`), By: `"parent_root": "0xdead`})
	defer forger.Close()

	p, client := n.serve(n.beacon.Checkpoint, forger.URL, n.beacon.URL)
	head, final := n.follows(p, client, 0)
	t.Logf("head %d, finalized %d, %+v", head.Number, final.Number, n.status())
	n.follows(p, client, uint64(head.Number)+2)
	var balance string
	account := "0x71562b71999873DB5b286dF957af199Ec94617F7"
	if err := client.Call(t.Context(), &balance, "eth_getBalance", account, "latest"); err != nil {
		t.Error(err)
	}
	n.await("the forger is set aside", p, func() bool {
		light := n.status()
		return light.Nodes[0].Invalid > 0 && light.Nodes[0].Aside > 0 && light.Nodes[1].Invalid == 0 && light.Problem == ""
	})
	if !strings.Contains(p.Output(), "sent false data") {
		t.Errorf("the log does not name the node that lies:\n%s", p.Output())
	}
	before := n.status()
	if before.Finalized == 0 || before.PeriodsBehind > 1 {
		t.Errorf("the status is %+v", before)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}

	t.Run("continues", func(t *testing.T) {
		p, client := n.serve(n.beacon.Checkpoint, n.beacon.URL)
		defer p.Kill()
		n.follows(p, client, uint64(head.Number)+2)
		if want := "slot=" + strconv.FormatUint(before.Finalized, 10) + " "; !strings.Contains(p.Output(), want) && n.status().Finalized <= before.Finalized {
			t.Errorf("it did not continue from slot %d:\n%s", before.Finalized, p.Output())
		}
	})
	t.Run("lies", func(t *testing.T) {
		n.ashlar.Data = t.TempDir()
		p, client := n.serve(n.beacon.Checkpoint, liar.URL)
		defer p.Kill()
		n.await("the liar is set aside", p, func() bool { return n.status().Nodes[0].Aside > 0 })
		var number string
		if err := client.Call(t.Context(), &number, "eth_blockNumber"); err == nil || !strings.Contains(err.Error(), "all beacon nodes are set aside") {
			t.Errorf("without an honest beacon node the head is %s, %v", number, err)
		}
	})
}
