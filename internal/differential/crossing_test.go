package differential

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ashlar/internal/sample"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	crossingHead = 9
	// emptyBlock is a block of Amsterdam without transactions.
	emptyBlock = 8
	// crossingEach is the number of generated questions per unit of weight.
	crossingEach = 6
)

// TestCrossing plays the consensus client of a geth that builds blocks and of Ashlar,
// while the chain crosses from Osaka into Amsterdam, and compares what both answer before,
// at and after the fork.
func TestCrossing(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d", *seed) // and the number of payloads that geth began, which depends on the machine
	c := newConsensus(t)
	defer func() { t.Logf("geth began %d payloads", c.tries-*seed<<16) }()
	theirs, ours := subscribeLogs(t, c.geth), subscribeLogs(t, c.ashlar)
	for number := uint64(1); number <= crossingHead; number++ {
		transactions := 0
		if number != emptyBlock {
			transactions = c.traffic.send(c.geth.public)
		}
		e := c.build(transactions)
		c.addWrong(e)
		c.addBad(e)
		c.add(e)
		c.compareHead()
	}
	c.checkKept()
	c.wrongVersions()
	c.compareBodies()
	for _, block := range c.blocks {
		c.checkAccessList(block)
	}
	c.compareLogs(theirs, ours)
	c.compareGenerated()
}

// checkKept checks the balances of contracts that destroyed themselves in favor of
// themselves while they were created: burnt before Amsterdam, kept since (EIP-8246).
func (c *consensus) checkKept() {
	c.t.Helper()
	sender := crypto.PubkeyToAddress(c.traffic.senders[selfDestroyed].PublicKey)
	for nonce := range c.traffic.rounds {
		want := int64(0)
		if nonce+1 >= crossingBlock {
			want = selfDestroyedValue
		}
		for _, p := range []peer{c.geth, c.ashlar} {
			address := crypto.CreateAddress(sender, nonce)
			if got := result[*hexutil.Big](c, p, "eth_getBalance", address, "latest"); got.ToInt().Int64() != want {
				c.t.Errorf("%s: the contract created in round %d has %s wei, want %d", p.name, nonce, got.ToInt(), want)
			}
		}
	}
}

// wrongVersions calls methods of the wrong fork.
func (c *consensus) wrongVersions() {
	c.t.Helper()
	early, late := envelope{payload: c.blocks[crossingBlock-2], requests: []hexutil.Bytes{}}, envelope{payload: c.blocks[crossingBlock-1], requests: []hexutil.Bytes{}}
	c.expect("error -32602", "a payload of Amsterdam", "engine_newPayloadV4", late.args()...)
	c.expect("error -32602", "a payload of Osaka", "engine_newPayloadV5", early.args()...)
	late.payload.SlotNumber, late.payload.BlockAccessList = nil, nil
	c.expect("error -38005", "a payload of Amsterdam in the form of Osaka", "engine_newPayloadV4", late.args()...)
	slot := uint64(1)
	early.payload.SlotNumber, early.payload.BlockAccessList = &slot, []byte{0xc0}
	c.expect("error -38005", "a payload of Osaka in the form of Amsterdam", "engine_newPayloadV5", early.args()...)
	hash, _, _ := c.head()
	a := c.attributes()
	a.SlotNumber, a.TargetGasLimit = nil, nil
	c.expect("error -38005", "attributes of Amsterdam in the form of Osaka", "engine_forkchoiceUpdatedV3", engine.ForkchoiceStateV1{HeadBlockHash: hash}, a)
}

// compareHead compares questions about the newest block.
func (c *consensus) compareHead() {
	c.t.Helper()
	hash, number, _ := c.head()
	at := quantity(number)
	sender := crypto.PubkeyToAddress(c.traffic.senders[0].PublicKey)
	authority := crypto.PubkeyToAddress(c.traffic.senders[len(c.traffic.senders)-1].PublicKey)
	asked := []question{
		{"eth_getBlockByNumber", []any{"latest", true}}, {"eth_getBlockByHash", []any{hash, false}},
		{"eth_getHeaderByHash", []any{hash}}, {"eth_getBlockReceipts", []any{at}},
		{"debug_getRawBlock", []any{at}}, {"debug_getRawHeader", []any{at}}, {"debug_getRawReceipts", []any{at}},
		{"eth_getLogs", []any{object{"blockHash": hash}}}, {"eth_getLogs", []any{object{"fromBlock": "0x0", "address": params.SystemAddress}}},
		{"eth_config", []any{}}, {"eth_feeHistory", []any{"0x5", "latest", []any{10, 90}}},
		{"eth_createAccessList", []any{object{"from": sender, "to": forwarder, "value": "0x5", "gasPrice": quantity(1e11)}, "latest"}},
		{"debug_traceBlockByNumber", []any{at, object{"tracer": "callTracer", "tracerConfig": object{"withLog": true}}}},
		{"debug_traceBlockByNumber", []any{at, object{"tracer": "prestateTracer", "tracerConfig": object{"diffMode": true}}}},
	}
	fresh := common.BigToAddress(numbered(0x123, number))
	for _, call := range []object{
		{"from": sender, "to": fresh, "value": "0x1"}, {"from": sender, "to": counter}, {"from": sender, "to": forwarder, "value": "0x7"},
		{"from": sender, "to": failing}, {"from": sender, "to": authority}, {"from": sender, "input": createCounter, "value": "0x1"},
		{"from": sender, "input": createSelfDestroyed, "value": "0x1"}, {"input": environment()},
	} {
		asked = append(asked, question{"eth_call", []any{call, "latest"}}, question{"eth_estimateGas", []any{call, "latest"}})
	}
	for _, address := range []common.Address{counter, forwarder, destroyed, failing, authority, sender, fresh, {0xfe, 0xe5}, params.HistoryStorageAddress} {
		asked = append(asked, question{"eth_getProof", []any{address, []string{"0x0", "0x1"}, "latest"}}, question{"eth_getCode", []any{address, at}})
	}
	c.compare(asked)
}

// compare fails the test for each question that the nodes answer differently without a reason.
func (c *consensus) compare(asked []question) {
	c.t.Helper()
	outcomes := ask(c.t, asked, c.geth.public, c.ashlar.public)
	_, number, _ := c.head()
	for i, q := range asked {
		o := outcomes[i]
		for _, d := range o.differences {
			if explain(q, o.geth, o.ashlar, d) == "" {
				c.t.Errorf("head %d: %s\n  geth against Ashlar: %s", number, q, d)
			}
		}
	}
}

// compareBodies compares the bodies of all blocks, and of one that is unknown.
func (c *consensus) compareBodies() {
	c.t.Helper()
	hashes := []common.Hash{{1}}
	for _, block := range c.blocks {
		hashes = append(hashes, block.BlockHash)
	}
	for _, q := range []question{
		{"engine_getPayloadBodiesByHashV1", []any{hashes}}, {"engine_getPayloadBodiesByHashV2", []any{hashes}},
		{"engine_getPayloadBodiesByRangeV1", []any{"0x1", "0x20"}}, {"engine_getPayloadBodiesByRangeV2", []any{"0x1", "0x20"}},
		{"engine_getPayloadBodiesByRangeV2", []any{"0x20", "0x1"}},
	} {
		o := ask(c.t, []question{q}, c.geth.engine, c.ashlar.engine)[0]
		for _, d := range o.differences {
			if explain(q, o.geth, o.ashlar, d) == "" {
				c.t.Errorf("%s\n  geth against Ashlar: %s", q, d)
			}
		}
	}
	c.expect("error -32602", "block 0", "engine_getPayloadBodiesByRangeV2", "0x0", "0x1")
	c.expect("error -38004", "too many blocks", "engine_getPayloadBodiesByRangeV2", "0x1", "0x401")
}

// result makes a call that must succeed.
func result[T any](c *consensus, p peer, method string, params ...any) (value T) {
	c.t.Helper()
	if err := p.public.Call(c.t.Context(), &value, method, params...); err != nil {
		c.t.Fatalf("%s: %v", p.name, err)
	}
	return value
}

// subscribeLogs subscribes to all logs of a node.
func subscribeLogs(t *testing.T, p peer) <-chan types.Log {
	t.Helper()
	client, err := rpc.DialContext(t.Context(), p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	logs := make(chan types.Log, 1000) // more than there are
	if _, err := client.EthSubscribe(t.Context(), logs, "logs", object{}); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return logs
}

// transferTopic is the topic of logs of native transfers (EIP-7708).
var transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// compareLogs compares the logs that subscribers received with geth's eth_getLogs. Native
// transfers are among them from the fork on.
func (c *consensus) compareLogs(theirs, ours <-chan types.Log) {
	c.t.Helper()
	want := result[[]types.Log](c, c.geth, "eth_getLogs", object{"fromBlock": "0x0", "toBlock": "latest"})
	for name, received := range map[string]<-chan types.Log{"geth": theirs, "Ashlar": ours} {
		for i, log := range want {
			select {
			case got := <-received:
				if a, b := encoded(c.t, got), encoded(c.t, log); !bytes.Equal(a, b) {
					c.t.Fatalf("%s: notification %d is %s, want %s", name, i, a, b)
				}
			case <-time.After(time.Minute):
				c.t.Fatalf("%s: %d notifications, want %d", name, i, len(want))
			}
		}
	}
	native := 0
	for _, log := range want {
		if log.Address != params.SystemAddress {
			continue
		}
		if native++; log.BlockNumber < crossingBlock || log.Topics[0] != transferTopic {
			c.t.Errorf("a native log of block %d with topic %s", log.BlockNumber, log.Topics[0])
		}
	}
	if rounds := crossingHead - crossingBlock; native != nativeLogs*rounds { // the empty block has none
		c.t.Errorf("%d native logs, want %d", native, nativeLogs*rounds)
	}
	c.t.Logf("%d logs, of which %d native", len(want), native)
}

func encoded(t *testing.T, log types.Log) []byte {
	t.Helper()
	text, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compareGenerated compares the generated questions of the differential test on this chain.
func (c *consensus) compareGenerated() {
	c.t.Helper()
	chain := filepath.Join(c.t.TempDir(), "chain.rlp")
	var blocks []byte
	for _, block := range c.blocks {
		blocks = append(blocks, result[hexutil.Bytes](c, c.geth, "debug_getRawBlock", quantity(block.Number))...)
	}
	if err := os.WriteFile(chain, blocks, 0o600); err != nil {
		c.t.Fatal(err)
	}
	sampled, err := sample.Read(c.file, chain)
	if err == nil {
		err = sampled.Learn(c.t.Context(), c.geth.public)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 0)), c: sampled}, crossingEach)
	all = append(all, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 1)), c: sampled}, crossingEach)...)
	all = append(all, extremeQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 2)), c: sampled}, crossingEach)...)
	report(c.t, all, ask(c.t, all, c.geth.public, c.ashlar.public))
}
