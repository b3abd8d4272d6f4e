package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"

	"ashlar/jsonrpc"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

// The times at which forks begin on the chain of these tests.
const shanghai, cancun, prague, osaka, amsterdam, bogota = 100, 200, 300, 400, 500, 600

func rules() *params.ChainConfig {
	at := func(time uint64) *uint64 { return &time }
	c := *params.MergedTestChainConfig
	c.ShanghaiTime, c.CancunTime, c.PragueTime, c.OsakaTime, c.AmsterdamTime = at(shanghai), at(cancun), at(prague), at(osaka), at(amsterdam)
	c.BPO1Time, c.BPO2Time, c.BogotaTime = at(420), at(440), at(bogota)
	return &c
}

// listener is a chain that only listens.
type listener struct {
	blocks  []*types.Block
	choices []Forkchoice
	status  Status
	err     error
}

func (l *listener) NewPayload(_ context.Context, block *types.Block) (Status, error) {
	l.blocks = append(l.blocks, block)
	return l.status, l.err
}

func (l *listener) UpdateForkchoice(_ context.Context, to Forkchoice) (Status, error) {
	l.choices = append(l.choices, to)
	return l.status, l.err
}

// Body and BodyAt are those of a chain with blocks 1 to 3, of which only the last has a list.
func (l *listener) Body(_ context.Context, hash common.Hash) (*Body, error) {
	if hash[0] == 0 {
		return nil, l.err
	}
	body, _, err := l.BodyAt(context.Background(), uint64(hash[0]))
	return body, err
}

func (l *listener) BodyAt(_ context.Context, number uint64) (*Body, bool, error) {
	switch number {
	case 1:
		return &Body{Transactions: [][]byte{{1, 2}, {3}}}, false, l.err
	case 2:
		return &Body{Withdrawals: types.Withdrawals{{Index: 1, Validator: 2, Address: common.Address{3}, Amount: 4}, {}}}, false, l.err
	case 3:
		return &Body{Withdrawals: types.Withdrawals{}, AccessList: []byte{0xc0}}, false, l.err
	}
	return nil, true, l.err
}

// ask makes a call as it comes by the wire, and returns the whole answer.
func ask(t testing.TB, methods jsonrpc.Handlers, method string, params ...any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(jsonrpc.NewServer(methods, jsonrpc.Config{}).Answer(t.Context(), body, nil))
}

// sent is a block with what is sent beside it.
type sent struct {
	version    string
	payload    map[string]any
	blobHashes []common.Hash
	beaconRoot *common.Hash
	requests   []string
}

func (s sent) params() []any {
	switch s.version {
	case "V3":
		return []any{s.payload, s.blobHashes, s.beaconRoot}
	case "V4", "V5":
		return []any{s.payload, s.blobHashes, s.beaconRoot, s.requests}
	}
	return []any{s.payload}
}

// made makes a block of a time with one transaction of each kind that there was, and
// what a consensus client sends of it, by go-ethereum's own types.
func made(t testing.TB, time uint64) (*types.Block, sent) {
	t.Helper()
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	header := &types.Header{
		ParentHash: common.Hash{1}, UncleHash: types.EmptyUncleHash, Coinbase: common.Address{2}, Root: common.Hash{3}, ReceiptHash: common.Hash{4},
		Difficulty: new(big.Int), Number: big.NewInt(1 << 20), GasLimit: 30_000_000, GasUsed: 21000, Time: time,
		Extra: []byte("made for a test"), MixDigest: common.Hash{5}, BaseFee: big.NewInt(7),
	}
	txs := []types.TxData{&types.LegacyTx{Gas: 21000, To: &common.Address{6}, Value: big.NewInt(1), GasPrice: big.NewInt(9)}, &types.DynamicFeeTx{Nonce: 1, ChainID: big.NewInt(1), Data: []byte{7}}}
	s := sent{version: "V1", blobHashes: []common.Hash{}}
	body := types.Body{}
	var requests [][]byte
	if time >= shanghai {
		s.version = "V2"
		body.Withdrawals = []*types.Withdrawal{{Index: 1, Validator: 2, Address: common.Address{3}, Amount: 4}}
	}
	if time >= cancun {
		s.version, s.beaconRoot = "V3", &common.Hash{8}
		header.ParentBeaconRoot, header.BlobGasUsed, header.ExcessBlobGas = s.beaconRoot, new(uint64), new(uint64)
		*header.BlobGasUsed = 2 * params.BlobTxBlobGasPerBlob
		s.blobHashes = []common.Hash{{1, 9}, {1, 10}}
		txs = append(txs, &types.BlobTx{ChainID: uint256.NewInt(1), BlobHashes: s.blobHashes, BlobFeeCap: uint256.NewInt(1)})
	}
	if time >= prague {
		s.version, s.requests = "V4", []string{"0x0001", "0x0102"}
		requests = [][]byte{{0, 1}, {1, 2}}
		hash := types.CalcRequestsHash(requests)
		header.RequestsHash = &hash
	}
	var list *bal.BlockAccessList
	if time >= amsterdam {
		s.version, header.SlotNumber = "V5", new(uint64)
		*header.SlotNumber = 77
		made := bal.NewConstructionBlockAccessList()
		made.NonceChange(common.Address{1}, 2, 3)
		made.StorageRead(common.Address{1}, common.Hash{4})
		list = made.ToEncodingObj()
		hash := list.Hash()
		header.BlockAccessListHash = &hash
	}
	for _, data := range txs {
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(1)), data)
		if err != nil {
			t.Fatal(err)
		}
		body.Transactions = append(body.Transactions, tx)
	}
	block := types.NewBlock(header, &body, nil, trie.NewStackTrie(nil))
	header = block.Header()
	header.ReceiptHash, header.Bloom = common.Hash{4}, types.Bloom{}
	block = types.NewBlockWithHeader(header).WithBody(body).WithAccessListUnsafe(list)
	text, err := json.Marshal(geth.BlockToExecutableData(block, nil, nil, requests).ExecutionPayload)
	if err == nil {
		err = json.Unmarshal(text, &s.payload)
	}
	if err != nil {
		t.Fatal(err)
	}
	return block, s
}

// Payloads as go-ethereum writes them become the blocks that they are of.
func TestPayloadsOfEveryFork(t *testing.T) {
	for _, time := range []uint64{shanghai - 1, shanghai, cancun - 1, cancun, prague - 1, prague, osaka, 430, 450, amsterdam - 1, amsterdam} {
		block, s := made(t, time)
		l := &listener{status: valid(block.Hash())}
		answer := ask(t, New(Config{Chain: l, Rules: rules()}).Methods(), "engine_newPayload"+s.version, s.params()...)
		var got struct{ Result geth.PayloadStatusV1 }
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		if got.Result.Status != geth.VALID || got.Result.LatestValidHash == nil || *got.Result.LatestValidHash != block.Hash() || got.Result.ValidationError != nil {
			t.Errorf("time %d: %s", time, answer)
			continue
		}
		if len(l.blocks) != 1 || l.blocks[0].Hash() != block.Hash() || l.blocks[0].Transactions().Len() != block.Transactions().Len() ||
			(l.blocks[0].AccessList() != nil) != (time >= amsterdam) ||
			types.DeriveSha(types.Withdrawals(l.blocks[0].Withdrawals()), trie.NewStackTrie(nil)) != types.DeriveSha(types.Withdrawals(block.Withdrawals()), trie.NewStackTrie(nil)) {
			t.Errorf("time %d: another block came out", time)
		}
	}
}

func valid(hash common.Hash) Status { return Status{Verdict: Valid, LatestValid: &hash} }

// TestRefusedPayloads has one wrong thing in each call.
func TestRefusedPayloads(t *testing.T) {
	const malformed, unsupported = `"code":-32602`, `"code":-38005`
	status := func(verdict string) string { return `"result":{"status":"` + verdict + `","latestValidHash":null,` }
	set := func(name string, value any) func(*sent) { return func(s *sent) { s.payload[name] = value } }
	drop := func(name string) func(*sent) { return func(s *sent) { delete(s.payload, name) } }
	as := func(version string) func(*sent) { return func(s *sent) { s.version = version } }
	for _, test := range []struct {
		name   string
		time   uint64
		change func(*sent)
		want   string
		why    string
	}{
		{"V1 after Paris", shanghai, as("V1"), malformed, "withdrawals: not expected"},
		{"V1 after Paris, no withdrawals", shanghai, func(s *sent) { as("V1")(s); drop("withdrawals")(s) }, unsupported, "Paris"},
		{"V2 after Shanghai", cancun, func(s *sent) { as("V2")(s); drop("blobGasUsed")(s); drop("excessBlobGas")(s) }, unsupported, "Shanghai"},
		{"V3 before Cancun", shanghai, func(s *sent) {
			s.version, s.beaconRoot = "V3", &common.Hash{}
			set("blobGasUsed", "0x0")(s)
			set("excessBlobGas", "0x0")(s)
		}, unsupported, "Cancun"},
		{"V3 after Cancun", prague, as("V3"), unsupported, "Cancun"},
		{"V4 before Prague", cancun, func(s *sent) { s.version, s.requests = "V4", []string{} }, unsupported, "Prague"},
		{"V4 after Osaka", amsterdam, func(s *sent) { as("V4")(s); drop("blockAccessList")(s); drop("slotNumber")(s) }, unsupported, "Osaka"},
		{"V5 before Amsterdam", osaka, func(s *sent) {
			as("V5")(s)
			set("blockAccessList", "0xc0")(s)
			set("slotNumber", "0x1")(s)
		}, unsupported, "Amsterdam"},
		{"V5 after Amsterdam", bogota, as("V5"), unsupported, "Amsterdam"},
		{"V5 without access list", amsterdam, drop("blockAccessList"), malformed, "blockAccessList: missing"},
		{"V5 without slot number", amsterdam, drop("slotNumber"), malformed, "slotNumber: missing"},
		{"V5 without requests", amsterdam, func(s *sent) { s.requests = nil }, malformed, "missing value for required argument 3"},
		{"V2 without withdrawals", shanghai, drop("withdrawals"), malformed, "withdrawals: expected from Shanghai on"},
		{"V2 with withdrawals too early", shanghai - 1, func(s *sent) { as("V2")(s); set("withdrawals", []any{})(s) }, malformed, "withdrawals: expected from Shanghai on"},
		{"V2 with blobs", shanghai, set("blobGasUsed", "0x0"), malformed, "blobGasUsed: not expected"},
		{"V3 without withdrawals", cancun, drop("withdrawals"), malformed, "withdrawals: missing"},
		{"V3 without blob gas", cancun, drop("blobGasUsed"), malformed, "blobGasUsed: missing"},
		{"V3 with null", cancun, set("excessBlobGas", nil), malformed, "excessBlobGas: missing"},
		{"V3 without beacon root", cancun, func(s *sent) { s.beaconRoot = nil }, malformed, "missing value for required argument 2"},
		{"V3 without blob hashes", cancun, func(s *sent) { s.blobHashes = nil }, malformed, "missing value for required argument 1"},
		{"V4 without requests", prague, func(s *sent) { s.requests = nil }, malformed, "missing value for required argument 3"},
		{"V4 with what comes later", prague, set("blockAccessList", "0xc0"), malformed, "blockAccessList: not expected"},
		{"unknown member", prague, set("made_up", "0x"), malformed, "made_up: not expected"},
		{"no object", prague, func(s *sent) { s.payload = nil }, malformed, "missing value for required argument 0"},
		{"a hash too short", prague, set("parentHash", "0x01"), malformed, "parentHash: expected 32 bytes"},
		{"a bloom too long", prague, set("logsBloom", "0x"+strings.Repeat("00", 257)), malformed, "logsBloom: expected 256 bytes"},
		{"no hexadecimal", prague, set("stateRoot", "0x"+strings.Repeat("zz", 32)), malformed, "stateRoot: expected hexadecimal"},
		{"leading zeros", prague, set("gasLimit", "0x01"), malformed, "gasLimit"},
		{"too large a number", prague, set("gasLimit", "0x10000000000000000"), malformed, "gasLimit"},
		{"a number that is none", prague, set("timestamp", 300), malformed, "timestamp: expected a string"},
		{"a withdrawal that lacks its amount", prague, set("withdrawals", []any{map[string]any{"index": "0x1", "validatorIndex": "0x2", "address": common.Address{}}}), malformed, "amount: missing"},
		{"requests out of order", prague, func(s *sent) { s.requests = []string{"0x0102", "0x0001"} }, malformed, "executionRequests: [1]: type 0 after type 1"},
		{"requests of one type", prague, func(s *sent) { s.requests = []string{"0x0102", "0x0103"} }, malformed, "executionRequests: [1]"},
		{"an empty request", prague, func(s *sent) { s.requests = []string{"0x01"} }, malformed, "executionRequests: [0]"},

		{"another hash", shanghai - 1, set("blockHash", common.Hash{9}), status("INVALID_BLOCK_HASH"), "block hash: expected"},
		{"another hash since Shanghai", shanghai, set("blockHash", common.Hash{9}), status("INVALID"), "block hash: expected"},
		{"another field", prague, set("gasUsed", "0x1"), status("INVALID"), "block hash: expected"},
		{"another withdrawal", prague, set("withdrawals", []any{}), status("INVALID"), "block hash: expected"},
		{"other requests", prague, func(s *sent) { s.requests = []string{} }, status("INVALID"), "block hash: expected"},
		{"another beacon root", prague, func(s *sent) { s.beaconRoot = &common.Hash{} }, status("INVALID"), "block hash: expected"},
		{"a blob hash too few", prague, func(s *sent) { s.blobHashes = s.blobHashes[:1] }, status("INVALID"), "blob hashes"},
		{"blob hashes in another order", prague, func(s *sent) { s.blobHashes = []common.Hash{s.blobHashes[1], s.blobHashes[0]} }, status("INVALID"), "blob hashes"},
		{"another access list", amsterdam, set("blockAccessList", "0xc0"), status("INVALID"), "block hash: expected"},
		{"another slot number", amsterdam, set("slotNumber", "0x4e"), status("INVALID"), "block hash: expected"},
		{"an access list that does not decode", amsterdam, set("blockAccessList", "0xc2c1"), status("INVALID"), "block access list"},
		{"an empty transaction", prague, set("transactions", []any{"0x"}), status("INVALID"), "transaction 0"},
		{"no transaction", prague, set("transactions", []any{"0x02c0"}), status("INVALID"), "transaction 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, s := made(t, test.time)
			test.change(&s)
			l := new(listener)
			answer := ask(t, New(Config{Chain: l, Rules: rules()}).Methods(), "engine_newPayload"+s.version, s.params()...)
			if !strings.Contains(answer, test.want) || !strings.Contains(answer, test.why) {
				t.Errorf("got %s\nexpected %s and %s", answer, test.want, test.why)
			}
			if len(l.blocks) > 0 {
				t.Error("the chain was asked")
			}
		})
	}
}

// What a chain says goes out as go-ethereum's own types read it.
func TestStatuses(t *testing.T) {
	block, s := made(t, prague)
	last := common.Hash{3}
	for _, test := range []struct {
		status Status
		want   string
	}{
		{valid(block.Hash()), fmt.Sprintf(`{"status":"VALID","latestValidHash":%q,"validationError":null}`, block.Hash())},
		{Status{Verdict: Invalid, LatestValid: &last, Why: "bad \"block\""}, fmt.Sprintf(`{"status":"INVALID","latestValidHash":%q,"validationError":"bad \"block\""}`, last)},
		{Status{Verdict: Syncing}, `{"status":"SYNCING","latestValidHash":null,"validationError":null}`},
		{Status{Verdict: Accepted}, `{"status":"ACCEPTED","latestValidHash":null,"validationError":null}`},
	} {
		api := New(Config{Chain: &listener{status: test.status}, Rules: rules()})
		if got, want := ask(t, api.Methods(), "engine_newPayload"+s.version, s.params()...), `{"jsonrpc":"2.0","id":1,"result":`+test.want+`}`; got != want {
			t.Errorf("got %s, expected %s", got, want)
		}
		state := map[string]any{"headBlockHash": block.Hash(), "safeBlockHash": common.Hash{}, "finalizedBlockHash": common.Hash{}}
		if got, want := ask(t, api.Methods(), "engine_forkchoiceUpdatedV3", state, nil), `{"jsonrpc":"2.0","id":1,"result":{"payloadStatus":`+test.want+`,"payloadId":null}}`; got != want {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
}

func TestForkchoices(t *testing.T) {
	state := map[string]any{"headBlockHash": common.Hash{1}, "safeBlockHash": common.Hash{2}, "finalizedBlockHash": common.Hash{3}}
	attributes := func(time string, more ...string) map[string]any {
		a := map[string]any{"timestamp": time, "prevRandao": common.Hash{}, "suggestedFeeRecipient": common.Address{}}
		for _, name := range more {
			a[name] = map[string]any{"withdrawals": []any{}, "parentBeaconBlockRoot": common.Hash{}, "slotNumber": "0x1", "targetGasLimit": "0x2"}[name]
		}
		return a
	}
	less := maps.Clone(state)
	delete(less, "safeBlockHash")
	twice, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	twice = append(twice[:len(twice)-1], `,"safeBlockHash":null}`...)
	for _, test := range []struct {
		name   string
		method string
		params []any
		chain  listener
		want   string
		told   bool
	}{
		{"a hash is missing", "V3", []any{less, nil}, listener{}, `-32602,"message":"Invalid params","data":{"err":"forkchoiceState.safeBlockHash: missing"}`, false},
		{"null after a hash", "V3", []any{json.RawMessage(twice), nil}, listener{}, `forkchoiceState.safeBlockHash: given twice`, false},
		{"no state", "V1", nil, listener{}, `-32602`, false},
		{"no attributes at all", "V1", []any{state}, listener{status: valid(common.Hash{1})}, `"payloadId":null`, true},
		{"inconsistent", "V2", []any{state, nil}, listener{err: ErrInconsistent}, `-38002,"message":"Invalid forkchoice state"`, true},
		{"too deep", "V3", []any{state, nil}, listener{err: ErrTooDeep}, `-38006,"message":"Too deep reorg"`, true},
		{"our own fault", "V3", []any{state, nil}, listener{err: errors.New("disk full")}, `-32603,"message":"internal error"`, true},
		{"attributes", "V3", []any{state, attributes("0x12c", "withdrawals", "parentBeaconBlockRoot")}, listener{status: valid(common.Hash{1})}, `-38003,"message":"Invalid payload attributes: Ashlar builds no blocks","data":{"err":"Ashlar builds no blocks`, true},
		{"attributes of Osaka", "V3", []any{state, attributes("0x190", "withdrawals", "parentBeaconBlockRoot")}, listener{status: valid(common.Hash{1})}, `Ashlar builds no blocks`, true},
		{"attributes while syncing", "V3", []any{state, attributes("0x1", "withdrawals")}, listener{status: Status{Verdict: Syncing}}, `"status":"SYNCING"`, true},
		{"V3 attributes without root", "V3", []any{state, attributes("0x12c", "withdrawals")}, listener{status: valid(common.Hash{1})}, `-38003,"message":"Invalid payload attributes","data":{"err":"payloadAttributes.parentBeaconBlockRoot: missing"}`, true},
		{"V3 attributes of Shanghai", "V3", []any{state, attributes("0x64", "withdrawals", "parentBeaconBlockRoot")}, listener{status: valid(common.Hash{1})}, `-38005`, true},
		{"V3 attributes of Amsterdam", "V3", []any{state, attributes("0x1f4", "withdrawals", "parentBeaconBlockRoot")}, listener{status: valid(common.Hash{1})}, `-38005`, true},
		{"V4 attributes", "V4", []any{state, attributes("0x1f4", "withdrawals", "parentBeaconBlockRoot", "slotNumber", "targetGasLimit")}, listener{status: valid(common.Hash{1})}, `Ashlar builds no blocks`, true},
		{"V4 attributes of Osaka", "V4", []any{state, attributes("0x190", "withdrawals", "parentBeaconBlockRoot", "slotNumber", "targetGasLimit")}, listener{status: valid(common.Hash{1})}, `-38005`, true},
		{"V4 attributes without slot number", "V4", []any{state, attributes("0x1f4", "withdrawals", "parentBeaconBlockRoot", "targetGasLimit")}, listener{status: valid(common.Hash{1})}, `-38003,"message":"Invalid payload attributes","data":{"err":"payloadAttributes.slotNumber: missing"}`, true},
		{"V4 attributes without gas limit", "V4", []any{state, attributes("0x1f4", "withdrawals", "parentBeaconBlockRoot", "slotNumber")}, listener{status: valid(common.Hash{1})}, `payloadAttributes.targetGasLimit: missing`, true},
		{"V4 with custody columns", "V4", []any{state, nil, "0x" + strings.Repeat("f0", 16)}, listener{status: valid(common.Hash{1})}, `"payloadId":null`, true},
		{"V4 with short custody columns", "V4", []any{state, nil, "0xf0"}, listener{status: valid(common.Hash{1})}, `-32602,"message":"Invalid params","data":{"err":"custodyColumns: expected 16 bytes"}`, false},
		{"V3 with custody columns", "V3", []any{state, nil, "0x" + strings.Repeat("f0", 16)}, listener{status: valid(common.Hash{1})}, `-32602`, false},
		{"V4 attributes of Bogota", "V4", []any{state, attributes("0x258", "withdrawals", "parentBeaconBlockRoot", "slotNumber", "targetGasLimit")}, listener{status: valid(common.Hash{1})}, `-38005`, true},
		{"V2 attributes of Cancun", "V2", []any{state, attributes("0xc8", "withdrawals")}, listener{status: valid(common.Hash{1})}, `-38005`, true},
		{"V2 attributes without withdrawals", "V2", []any{state, attributes("0x64")}, listener{status: valid(common.Hash{1})}, `-38003`, true},
		{"V2 attributes of Paris", "V2", []any{state, attributes("0x1")}, listener{status: valid(common.Hash{1})}, `Ashlar builds no blocks`, true},
		{"V1 attributes with withdrawals", "V1", []any{state, attributes("0x1", "withdrawals")}, listener{status: valid(common.Hash{1})}, `-38003`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, New(Config{Chain: &test.chain, Rules: rules()}).Methods(), "engine_forkchoiceUpdated"+test.method, test.params...)
			if !strings.Contains(answer, test.want) {
				t.Errorf("got %s, expected %s", answer, test.want)
			}
			if told := len(test.chain.choices) == 1 && test.chain.choices[0] == (Forkchoice{common.Hash{1}, common.Hash{2}, common.Hash{3}}); told != test.told {
				t.Errorf("the chain was told %v", test.chain.choices)
			}
		})
	}
}

func TestIdentification(t *testing.T) {
	api := New(Config{Chain: new(listener), Rules: rules(), Client: ClientVersion{Code: "AS", Name: "Ashlar", Version: "v1", Commit: "0x01020304"}})
	methods := api.Methods()
	const capabilities = `["engine_forkchoiceUpdatedV1","engine_forkchoiceUpdatedV2","engine_forkchoiceUpdatedV3","engine_forkchoiceUpdatedV4",` +
		`"engine_getBlobsV1","engine_getBlobsV2","engine_getBlobsV3","engine_getClientVersionV1",` +
		`"engine_getPayloadBodiesByHashV1","engine_getPayloadBodiesByHashV2","engine_getPayloadBodiesByRangeV1","engine_getPayloadBodiesByRangeV2",` +
		`"engine_newPayloadV1","engine_newPayloadV2","engine_newPayloadV3","engine_newPayloadV4","engine_newPayloadV5"]`
	if got := ask(t, methods, "engine_exchangeCapabilities", []string{"engine_newPayloadV4", "made_up"}); !strings.Contains(got, capabilities) {
		t.Errorf("the capabilities are %s", got)
	}
	client := geth.ClientVersionV1{Code: "LH", Name: "Lighthouse", Version: "v4.6.0", Commit: "fa4ff922"}
	if got := ask(t, methods, "engine_getClientVersionV1", client); !strings.Contains(got, `"result":[{"code":"AS","name":"Ashlar","version":"v1","commit":"0x01020304"}]`) {
		t.Errorf("the version is %s", got)
	}
	if last := api.LastCalls(); last.Client != "Lighthouse v4.6.0" || !last.Payload.IsZero() {
		t.Errorf("last %+v", last)
	}
	for _, method := range refused() {
		if got := ask(t, methods, method, "0x0000000000000001"); !strings.Contains(got, `-38001,"message":"Unknown payload: Ashlar builds no blocks","data":{"err":"Ashlar builds no blocks`) {
			t.Errorf("%s: %s", method, got)
		}
	}
}
