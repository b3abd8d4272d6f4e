package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	slotSeconds = 12
	// crossingBlock is the first block of Amsterdam.
	crossingBlock    = 4
	crossingGasLimit = 60_000_000
	// buildTime is the time for a node to fill a block, as short as it may be: a block
	// that lacks transactions is built again.
	buildTime  = 100 * time.Millisecond
	buildTries = 100
)

// peer is a node that is driven over the Engine API.
type peer struct {
	name           string
	engine, public *node.Client
	socket         string // WebSocket URL
}

// consensus is a consensus client of two nodes. geth builds the blocks.
type consensus struct {
	t            *testing.T
	geth, ashlar peer
	file         string // of the genesis
	genesis      *types.Header
	amsterdam    uint64 // its time
	traffic      *traffic
	blocks       []engine.ExecutableData // from block 1 on
	tries        uint64                  // number of payloads begun, above the seed
}

// newConsensus starts geth and Ashlar on a new chain.
func newConsensus(t *testing.T) *consensus {
	t.Helper()
	genesis := ingesttest.Genesis(t)
	amsterdam := genesis.Timestamp + crossingBlock*slotSeconds
	genesis.Config.AmsterdamTime = &amsterdam
	genesis.GasLimit = crossingGasLimit
	c := &consensus{t: t, amsterdam: amsterdam, traffic: newTraffic(t, genesis.Config, genesis.Alloc), tries: *seed << 16}
	c.genesis = genesis.ToBlock().Header()
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	c.file = filepath.Join(t.TempDir(), "genesis.json")
	if err := os.WriteFile(c.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.geth, c.ashlar = driveGeth(t, c.file), driveAshlar(t, c.file)
	return c
}

func driveGeth(t *testing.T, genesis string) peer {
	t.Helper()
	d, err := importIntoGeth(t, node.HashScheme, false, genesis).ServeEngine(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	return peer{"geth", d.Engine, d.Public, d.Socket}
}

func driveAshlar(t *testing.T, genesis string) peer {
	t.Helper()
	a := newAshlar(t, filepath.Join(t.TempDir(), "ashlar.yaml"))
	a.Network = "crossing"
	// The same cap as geth's, so that code which looks at its gas sees the same.
	text := fmt.Sprintf("networks:\n  %s:\n    genesis: %s\n    engine: {listen: '127.0.0.1:0'}\n    call_gas: 50000000\n", a.Network, genesis)
	if err := os.WriteFile(a.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // which ends before the cleanups run
	p, public, err := a.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := p.Engine(t.Context(), filepath.Join(a.Data, "engine", a.Network+".jwt"))
	if err != nil {
		t.Fatal(err)
	}
	return peer{"Ashlar", client, public, node.SocketURL(public.URL)}
}

// head returns the hash, number and time of the newest block.
func (c *consensus) head() (hash common.Hash, number, time uint64) {
	if len(c.blocks) == 0 {
		return c.genesis.Hash(), 0, c.genesis.Time
	}
	last := c.blocks[len(c.blocks)-1]
	return last.BlockHash, last.Number, last.Timestamp
}

// envelope is a payload with the arguments that accompany it.
type envelope struct {
	payload    engine.ExecutableData
	beaconRoot common.Hash
	requests   []hexutil.Bytes
}

// args returns the arguments of engine_newPayload.
func (e envelope) args() []any {
	return []any{e.payload, []common.Hash{}, e.beaconRoot, e.requests}
}

// rehash sets the block hash to that of the payload's content.
func (e *envelope) rehash(t *testing.T) {
	t.Helper()
	requests := [][]byte{}
	for _, r := range e.requests {
		requests = append(requests, r)
	}
	block, err := engine.ExecutableDataToBlockNoHash(e.payload, nil, &e.beaconRoot, requests)
	if err != nil {
		t.Fatal(err)
	}
	e.payload.BlockHash = block.Hash()
}

// methods returns the versions of the Engine API at a time.
func (c *consensus) methods(time uint64) (forkchoice, get, give string) {
	if time < c.amsterdam {
		return "engine_forkchoiceUpdatedV3", "engine_getPayloadV5", "engine_newPayloadV4"
	}
	return "engine_forkchoiceUpdatedV4", "engine_getPayloadV6", "engine_newPayloadV5"
}

// attributes returns the attributes of the next block. No two are equal, so that geth
// builds each payload anew.
func (c *consensus) attributes() engine.PayloadAttributes {
	_, number, time := c.head()
	number, time = number+1, time+slotSeconds
	c.tries++
	root := common.BigToHash(numbered(0xbeac, number))
	a := engine.PayloadAttributes{
		Timestamp: time, Random: common.BigToHash(numbered(0x4a2d, c.tries)), SuggestedFeeRecipient: common.Address{0xfe, 0xe5}, BeaconRoot: &root,
		Withdrawals: []*types.Withdrawal{
			{Index: 2 * number, Validator: 7, Address: common.BigToAddress(numbered(0x3a1d, number)), Amount: 3},
			{Index: 2*number + 1, Validator: 8, Address: counter, Amount: 1},
		},
	}
	if time >= c.amsterdam {
		slot, limit := 1000+number, uint64(crossingGasLimit)
		a.SlotNumber, a.TargetGasLimit = &slot, &limit
	}
	return a
}

// build has geth build the next block with a number of transactions from its pool.
func (c *consensus) build(transactions int) envelope {
	c.t.Helper()
	for range buildTries {
		a := c.attributes()
		forkchoice, get, _ := c.methods(a.Timestamp)
		hash, _, _ := c.head()
		var begun engine.ForkChoiceResponse
		if err := c.geth.engine.Call(c.t.Context(), &begun, forkchoice, engine.ForkchoiceStateV1{HeadBlockHash: hash}, a); err != nil {
			c.t.Fatal(err)
		}
		if begun.PayloadID == nil {
			c.t.Fatalf("geth builds nothing: %+v", begun.PayloadStatus)
		}
		time.Sleep(buildTime)
		var built engine.ExecutionPayloadEnvelope
		if err := c.geth.engine.Call(c.t.Context(), &built, get, begun.PayloadID); err != nil {
			c.t.Fatal(err)
		}
		if len(built.ExecutionPayload.Transactions) == transactions {
			e := envelope{payload: *built.ExecutionPayload, beaconRoot: *a.BeaconRoot, requests: []hexutil.Bytes{}}
			for _, r := range built.Requests {
				e.requests = append(e.requests, r)
			}
			return e
		}
	}
	c.t.Fatalf("geth built no block with %d transactions in %d tries", transactions, buildTries)
	return envelope{}
}

// said returns what a node answers to a call of engine_newPayload or an invalid call: a
// verdict and the latest valid block, or the code of an error.
func (c *consensus) said(p peer, method string, params ...any) string {
	c.t.Helper()
	var status engine.PayloadStatusV1
	err := p.engine.Call(c.t.Context(), &status, method, params...)
	var refused *node.Error
	if errors.As(err, &refused) {
		return fmt.Sprint("error ", refused.Code)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if status.LatestValidHash == nil {
		return status.Status + " null"
	}
	return status.Status + " " + status.LatestValidHash.Hex()
}

// expect sends a call to both nodes and compares the answers.
func (c *consensus) expect(want, what, method string, params ...any) {
	c.t.Helper()
	for _, p := range []peer{c.geth, c.ashlar} {
		if got := c.said(p, method, params...); got != want {
			c.t.Errorf("%s: %s answers %s to %s, want %s", what, p.name, got, method, want)
		}
	}
}

// add gives a payload to both nodes and makes it their head.
func (c *consensus) add(e envelope) {
	c.t.Helper()
	forkchoice, _, give := c.methods(e.payload.Timestamp)
	c.expect(engine.VALID+" "+e.payload.BlockHash.Hex(), fmt.Sprint("block ", e.payload.Number), give, e.args()...)
	state := engine.ForkchoiceStateV1{HeadBlockHash: e.payload.BlockHash}
	if len(c.blocks) > 1 {
		state.SafeBlockHash, state.FinalizedBlockHash = e.payload.ParentHash, c.blocks[len(c.blocks)-2].BlockHash
	}
	c.blocks = append(c.blocks, e.payload)
	for _, p := range []peer{c.geth, c.ashlar} {
		var answer engine.ForkChoiceResponse
		err := p.engine.Call(c.t.Context(), &answer, forkchoice, state, nil)
		if err != nil || answer.PayloadStatus.Status != engine.VALID || answer.PayloadStatus.LatestValidHash == nil || *answer.PayloadStatus.LatestValidHash != e.payload.BlockHash {
			c.t.Fatalf("%s: %s of block %d: %+v, %v", p.name, forkchoice, e.payload.Number, answer.PayloadStatus, err)
		}
	}
}

// numbered returns a number made of a kind of value and a counter.
func numbered(kind, n uint64) *big.Int { return new(big.Int).SetUint64(kind<<32 | n) }
