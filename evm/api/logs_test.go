package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/internal/conformance"
	"ashlar/internal/raced"
	"ashlar/internal/vectors"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// TestRecordedLogsAndProofs replays the conversations of ethereum/execution-apis about both.
func TestRecordedLogsAndProofs(t *testing.T) {
	conversations, err := conformance.ReadConversations(vectors.Path(t, "execution-apis"))
	if err != nil {
		t.Fatal(err)
	}
	s := serveVectors(t)
	replayed := 0
	for _, c := range conversations {
		if c.Method != "eth_getLogs" && c.Method != "eth_getProof" {
			continue
		}
		replayed++
		t.Run(c.Name, func(t *testing.T) {
			for _, e := range c.Exchanges {
				got := s.Answer(t.Context(), e.Request, nil)
				if string(got) != string(e.Answer) {
					compare(t, e.Answer, got, c.ShapeOnly)
				}
			}
		})
	}
	if replayed < 13 {
		t.Errorf("%d conversations, there should be 13 or more", replayed)
	}
}

// failure is an error as a client reads it.
type failure struct {
	Code    int
	Message string
	Data    *string
}

func (s *service) failure(t *testing.T, method string, args ...any) failure {
	t.Helper()
	a := s.answer(t, method, args...)
	if a.Error == nil {
		t.Fatalf("%s%v: %s, want an error", method, args, a.Result)
	}
	var f failure
	if err := json.Unmarshal(a.Error, &f); err != nil {
		t.Fatalf("%v in %s", err, a.Error)
	}
	return f
}

// TestLogFilterErrors: what is refused, and in which words. The chain has the
// blocks 0 to 4.
func TestLogFilterErrors(t *testing.T) {
	s := serveMade(t)
	address, topic := `"0x`+strings.Repeat("1", 40)+`"`, `"0x`+strings.Repeat("2", 64)+`"`
	many := func(one string, n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	for _, test := range []struct {
		filter  string
		code    int
		message string
	}{
		{`"latest"`, -32602, `invalid argument 0: non-object value, want a filter object`},
		{`{"fromBlock":"0x3","toBlock":"0x2"}`, -32602, `invalid block range params`},
		{`{"fromBlock":"0x30","toBlock":"0x20"}`, -32602, `invalid block range params`},
		{`{"toBlock":"0x3"}`, -32602, `invalid block range params`},
		{`{"fromBlock":"latest","toBlock":"earliest"}`, -32602, `invalid block range params`},
		{`{"fromBlock":"0x1","toBlock":"0x5"}`, -32602, `block range extends beyond current head block`},
		{`{"fromBlock":"0x5"}`, -32602, `invalid block range params`},
		{`{"toBlock":"0x5"}`, -32602, `block range extends beyond current head block`},
		{`{"fromBlock":"earliest","toBlock":"0x5"}`, -32602, `block range extends beyond current head block`},
		{`{"fromBlock":"0x5","toBlock":"0x6"}`, -32602, `block range extends beyond current head block`},
		{`{"fromBlock":"1"}`, -32602, `invalid argument 0: hex string without 0x prefix`},
		{`{"fromBlock":3}`, -32602, `invalid argument 0: non-string value, want a hex string`},
		{`{"fromBlock":"newest"}`, -32602, `invalid argument 0: hex string without 0x prefix`},
		{`{"toBlock":"finalized"}`, -32000, `finalized block not found`},
		{`{"fromBlock":"safe"}`, -32000, `safe block not found`},
		{`{"blockHash":` + topic + `}`, -32000, `unknown block`},
		{`{"blockHash":"0x12"}`, -32602, `invalid argument 0: hex string has length 2, want 64 for common.Hash`},
		{`{"blockHash":` + topic + `,"toBlock":"latest"}`, -32602, `invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other`},
		{`{"topics":[null,null,null,null,null],"address":"","fromBlock":"0x1","blockHash":` + topic + `}`, -32602, `invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other`},
		{`{"fromBlock":"0x1","blockHash":` + topic + `}`, -32602, `invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other`},
		{`{"address":5}`, -32602, `invalid argument 0: invalid addresses in query`},
		{`{"address":"0x12"}`, -32602, `invalid argument 0: invalid address: hex string has length 2, want 40 for common.Address`},
		{`{"address":[` + address + `,7]}`, -32602, `invalid argument 0: non-string address at index 1`},
		{`{"address":[` + address + `,"0xzz"]}`, -32602, `invalid argument 0: invalid address at index 1: hex string has length 2, want 40 for common.Address`},
		{`{"topics":"0x"}`, -32602, `invalid argument 0: invalid topic(s)`},
		{`{"topics":[5]}`, -32602, `invalid argument 0: invalid topic(s)`},
		{`{"topics":[[` + topic + `,{}]]}`, -32602, `invalid argument 0: invalid topic(s)`},
		{`{"topics":[[[]]]}`, -32602, `invalid argument 0: invalid topic(s)`},
		{`{"topics":["0x22"]}`, -32602, `invalid argument 0: hex string has length 2, want 64 for common.Hash`},
		{`{"topics":[null,null,null,null,null]}`, -32602, `invalid argument 0: exceed max topics`},
		{`{"address":` + many(address, 5001) + `}`, -32602, `too many addresses and topics: the query filters by 5001, and the current limit is 5000`},
		{`{"address":` + many(address, 3000) + `,"topics":[null,` + many(topic, 1000) + `,` + many(topic, 1500) + `]}`, -32602, `too many addresses and topics: the query filters by 5500, and the current limit is 5000`},
	} {
		got := s.failure(t, "eth_getLogs", json.RawMessage(test.filter))
		hinted := strings.Contains(test.filter, "newest") // with the tags there are
		if got.Code != test.code || got.Message != test.message || (got.Data != nil) != hinted {
			t.Errorf("%.80s:\ngot  %d %s\nwant %d %s", test.filter, got.Code, got.Message, test.code, test.message)
		}
	}
	if got := s.failure(t, "eth_getLogs"); got.Message != "missing value for required argument 0" {
		t.Errorf("no filter at all: %s", got.Message)
	}
}

// TestLogFilters: filters that say the same find the same. All logs of the busy
// block are the logger's, with the topics 1, 2 and 3.
func TestLogFilters(t *testing.T) {
	s := serveMade(t)
	from := fmt.Sprintf(`"fromBlock":"%#x","toBlock":"%#x"`, madeBusyBlock, madeBusyBlock)
	topic := func(n int) string { return fmt.Sprintf(`"%s"`, common.BigToHash(big.NewInt(int64(n)))) }
	other := `"0x` + strings.Repeat("1", 40) + `"`
	address := fmt.Sprintf(`"%s"`, strings.ToLower(logger.Hex()))
	for filter, want := range map[string]int{
		`{` + from + `}`: madeBusy,
		`{"fromBlock":"0X3","toBlock":"0x3","else":{}}`:                                                   madeBusy,
		`{"blockHash":"` + s.blocks[madeBusyBlock].Hash().Hex() + `"}`:                                    madeBusy,
		`{"blockhash":"` + s.blocks[madeBusyBlock].Hash().Hex() + `"}`:                                    madeBusy,
		`{"FROMBLOCK":"0x3","toblock":"0x3","Address":` + other + `,"ADDRESS":` + address + `}`:           madeBusy,
		`{"blockHash":"` + s.blocks[madeBusyBlock].Hash().Hex() + `","fromBlock":null,"toBlock":null}`:    madeBusy,
		`{"blockHash":null,` + from + `}`:                                                                 madeBusy,
		`{"fromBlock":"earliest","fromBlock":null}`:                                                       0,
		`{"fromBlock":null,` + from + `}`:                                                                 madeBusy,
		`{` + from + `,"blockHash":` + topic(9) + `,"blockHash":null}`:                                    madeBusy,
		`{` + from + `,"address":` + other + `,"address":null,"topics":[` + topic(9) + `],"topics":null}`: madeBusy,
		`{` + from + `,"address":null,"topics":null}`:                                                     madeBusy,
		`{` + from + `,"address":[],"topics":[]}`:                                                         madeBusy,
		`{` + from + `,"address":` + address + `}`:                                                        madeBusy,
		`{` + from + `,"address":[` + other + `,` + address + `]}`:                                        madeBusy,
		`{` + from + `,"address":` + other + `}`:                                                          0,
		`{` + from + `,"topics":[` + topic(1) + `]}`:                                                      madeBusy,
		`{` + from + `,"topics":[null,[` + topic(9) + `,` + topic(2) + `],[]]}`:                           madeBusy,
		`{` + from + `,"topics":[[null,` + topic(9) + `]]}`:                                               madeBusy,
		`{` + from + `,"topics":[null,null,null]}`:                                                        madeBusy,
		`{` + from + `,"topics":[null,null,null,null]}`:                                                   0,
		`{` + from + `,"topics":[` + topic(1) + `,null,null,null]}`:                                       0,
		`{` + from + `,"topics":[` + topic(2) + `]}`:                                                      0,
		`{` + from + `,"topics":[` + topic(1) + `,` + topic(1) + `]}`:                                     0,
		`{"fromBlock":"earliest","toBlock":"0x1"}`:                                                        0,
		`{}`: 0,
		`{"fromBlock":"pending","toBlock":"latest"}`: 0,
	} {
		var logs []types.Log
		s.ask(t, &logs, "eth_getLogs", json.RawMessage(filter))
		if len(logs) != want {
			t.Errorf("%s: %d logs, want %d", filter, len(logs), want)
		}
	}
}

// TestLogsAreThoseOfReceipts: a log is the same to the byte wherever it is asked for.
func TestLogsAreThoseOfReceipts(t *testing.T) {
	s := serveMade(t)
	var fromReceipts, found []json.RawMessage
	for number := range s.blocks {
		var receipts []struct{ Logs []json.RawMessage }
		s.ask(t, &receipts, "eth_getBlockReceipts", fmt.Sprintf("%#x", number))
		for _, receipt := range receipts {
			fromReceipts = append(fromReceipts, receipt.Logs...)
		}
	}
	same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
	for range 2 { // the second time with the transactions' hashes at hand
		s.ask(t, &found, "eth_getLogs", map[string]any{"fromBlock": "earliest"})
		if len(found) == 0 || !slices.EqualFunc(found, fromReceipts, same) {
			t.Errorf("got\n%s\nwant\n%s", found, fromReceipts)
		}
		var block json.RawMessage
		for number := range s.blocks {
			s.ask(t, &block, "eth_getBlockByNumber", fmt.Sprintf("%#x", number), false)
		}
	}
}

// serveManyLogs serves a chain whose blocks have so many logs each.
func serveManyLogs(t *testing.T, perBlock ...int) *service {
	t.Helper()
	blocks := make([]types.Receipts, len(perBlock))
	for number, logs := range perBlock {
		receipt := &types.Receipt{Status: 1}
		for range logs {
			receipt.Logs = append(receipt.Logs, &types.Log{Address: logger, Topics: []common.Hash{{1}}})
		}
		blocks[number] = types.Receipts{receipt}
	}
	return serveReceipts(t, nil, blocks...)
}

// serveReceipts serves a chain whose blocks have these receipts, of transactions with an input.
func serveReceipts(t *testing.T, input []byte, blocks ...types.Receipts) *service {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "data", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	settled, err := archive.Create(t.Context(), store, &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int)})
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(params.TestChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	var parent common.Hash
	var nonce uint64
	for number, receipts := range blocks {
		var transactions types.Transactions
		for range receipts {
			transactions = append(transactions, types.NewTx(&types.LegacyTx{
				Nonce: nonce, GasPrice: new(big.Int), Value: new(big.Int), Data: input, V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1),
			}))
			nonce++
		}
		header := &types.Header{Number: big.NewInt(int64(number)), ParentHash: parent, Difficulty: new(big.Int)}
		block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: transactions})
		parent = block.Hash()
		err := settled.Append(t.Context(), &evm.Delta{Block: block, Senders: make([]common.Address, len(receipts)), Receipts: receipts})
		if err != nil {
			t.Fatal(err)
		}
	}
	methods := methodsOf(api.New(query.NewChain(settled, nil, executor), api.Config{})).Handlers()
	return &service{Server: jsonrpc.NewServer(methods, jsonrpc.Config{}), methods: methods}
}

// TestTooManyLogs: over 10,000 the error names the longest range that fits, and
// none where one block alone is over.
func TestTooManyLogs(t *testing.T) {
	raced.Skip(t)
	s := serveManyLogs(t, 0, 4000, 6000, 0, 1, 10001, 9999, 2)
	for _, filter := range []map[string]any{{}, {"address": logger}, {"topics": []any{[]any{common.Hash{1}, common.Hash{2}}}}} {
		for _, test := range []struct {
			from, to string
			count    int    // 0 when there are too many
			data     string // of the error
		}{
			{"0x0", "0x3", 10000, ""},
			{"0x0", "0x4", 0, "Try with this block range [0x0, 0x3]."},
			{"0x1", "latest", 0, "Try with this block range [0x1, 0x3]."},
			{"0x2", "0x4", 6001, ""},
			{"0x2", "latest", 0, "Try with this block range [0x2, 0x4]."},
			{"0x5", "0x5", 0, ""},
			{"0x5", "latest", 0, ""},
			{"0x6", "latest", 0, "Try with this block range [0x6, 0x6]."},
			{"0x7", "latest", 2, ""},
		} {
			filter["fromBlock"], filter["toBlock"] = test.from, test.to
			if test.count > 0 {
				var logs []json.RawMessage
				if s.ask(t, &logs, "eth_getLogs", filter); len(logs) != test.count {
					t.Errorf("%v: %d logs, want %d", filter, len(logs), test.count)
				}
				continue
			}
			got, data := s.failure(t, "eth_getLogs", filter), ""
			if got.Data != nil {
				data = *got.Data
			}
			if got.Code != -32005 || got.Message != "query returned more than 10000 results" || data != test.data {
				t.Errorf("%v: %d %s, %q, want the data %q", filter, got.Code, got.Message, data, test.data)
			}
		}
	}
}
