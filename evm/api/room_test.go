package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// limited answers under a limit and tells how much was appended to the buffer before
// the answer was there.
func limited(t *testing.T, methods jsonrpc.Handlers, limit int, request string) (answer []byte, appended int) {
	t.Helper()
	buffer := make([]byte, 4<<20)
	server := jsonrpc.NewServer(methods, jsonrpc.Config{AnswerBytes: limit})
	answer = server.Answer(t.Context(), []byte(request), buffer[:0])
	return answer, len(bytes.TrimRight(buffer, "\x00"))
}

// TestAnswersEndAtTheLimit: whatever has many parts is not made any further than one
// part behind the limit.
func TestAnswersEndAtTheLimit(t *testing.T) {
	const large = 4 << 10 // bytes in a log and in an input
	var receipts types.Receipts
	for range 20 {
		log := &types.Log{Address: logger, Topics: []common.Hash{{1}}, Data: bytes.Repeat([]byte{0xab}, large)}
		receipts = append(receipts, &types.Receipt{Status: 1, Logs: []*types.Log{log}})
	}
	stored := serveReceipts(t, bytes.Repeat([]byte{0xcd}, large), nil, receipts)
	made, pooled := serveMade(t), serveOpen(t)
	for nonce := range uint64(20) {
		pooled.send(nonce)
	}
	keys := make([]common.Hash, 1000)
	for i := range keys {
		keys[i] = common.Hash{31: byte(i), 30: byte(i >> 8)}
	}
	slots := make(map[common.Address][]common.Hash)
	var accessed types.AccessList
	for i := range 100 {
		slots[common.Address{byte(i)}] = keys[:10]
		accessed = append(accessed, types.AccessTuple{Address: common.Address{1, byte(i)}, StorageKeys: keys[:1]})
	}
	var percentiles []int
	for i := range 100 {
		percentiles = append(percentiles, i)
	}
	const text = 2*large + 1500 // of a log or a transaction, beside what surrounds it
	for _, c := range []struct {
		service *service
		limit   int
		part    int // no part is larger
		method  string
		args    []any
	}{
		{stored, 20_000, text, "eth_getLogs", []any{map[string]any{"fromBlock": "earliest"}}},
		{stored, 20_000, text, "eth_getBlockReceipts", []any{"latest"}},
		{stored, 20_000, text, "debug_getRawReceipts", []any{"latest"}},
		{stored, 20_000, text, "eth_getBlockByNumber", []any{"latest", true}},
		{stored, 20_000, 2 * text, "rollup_getEvents", []any{map[string]any{"chunk_size": 100}}},
		{made, 20_000, 1000, "eth_getProof", []any{logger, keys, "latest"}},
		{made, 20_000, 1000, "eth_getStorageValues", []any{slots}},
		{made, 5_000, 200, "eth_createAccessList", []any{map[string]any{"to": reverter, "accessList": accessed}}},
		{made, 1_000, 1000, "eth_feeHistory", []any{5, "latest", percentiles}},
		{pooled.service, 4_000, 1500, "txpool_content", nil},
		{pooled.service, 4_000, 1500, "txpool_contentFrom", []any{pooled.sender}},
	} {
		request := requestOf(t, c.method, c.args...)
		if whole, _ := limited(t, c.service.methods, 1<<20, request); len(whole) < 2*c.limit+c.part {
			t.Errorf("%s: the whole answer has %d bytes only: %.300s", c.method, len(whole), whole)
		}
		answer, appended := limited(t, c.service.methods, c.limit, request)
		if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"response too large"}}`; string(answer) != want {
			t.Errorf("%s: %.300s", c.method, answer)
		}
		if most := c.limit + c.part; appended > most {
			t.Errorf("%s: %d bytes were made, want at most %d", c.method, appended, most)
		}
	}
}

// TestRevertEndsAtTheLimit: what a call reverts with is bounded as a result is.
func TestRevertEndsAtTheLimit(t *testing.T) {
	const size = 1 << 16
	code := fmt.Sprintf("%#x", []byte{0x62, size >> 16, byte(size >> 8 & 0xff), size & 0xff, 0x60, 0, 0xfd}) // PUSH3 size PUSH1 0 REVERT
	for _, method := range []string{"eth_call", "eth_estimateGas"} {
		request := requestOf(t, method, map[string]any{"to": logger}, "latest", map[string]any{logger.Hex(): map[string]any{"code": code}})
		methods := serveMade(t).methods
		whole, _ := limited(t, methods, 1<<20, request)
		if !bytes.Contains(whole, []byte(`{"code":3,"message":"execution reverted","data":"0x0`)) || len(whole) < 2*size {
			t.Errorf("%s: %.300s", method, whole)
		}
		answer, appended := limited(t, methods, 2*size-1, request)
		if !bytes.Contains(answer, []byte(`"error":{"code":-32003,"message":"response too large"}`)) || appended > 1000 {
			t.Errorf("%s: %d bytes were made for %.300s", method, appended, answer)
		}
	}
}

// TestFilterGivesTheRestLater: what does not fit into the answer to a poll is in those
// to the next, in order; a filter of which a single block does not fit is gone.
func TestFilterGivesTheRestLater(t *testing.T) {
	l, made := serveLive(t, ingest.DefaultDepths(), api.Config{}), newBranches(t)
	ask := func(limit int, method string, args ...any) (a answer) {
		t.Helper()
		raw, _ := limited(t, l.methods, limit, requestOf(t, method, args...))
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	install := func(method string, args ...any) (id string) {
		t.Helper()
		if a := ask(1<<20, method, args...); json.Unmarshal(a.Result, &id) != nil {
			t.Fatalf("%s: %s", method, a.Error)
		}
		return id
	}
	logs, blocks := install("eth_newFilter", map[string]any{}), install("eth_newBlockFilter")
	hashes, whole := install("eth_newPendingTransactionFilter"), install("eth_newPendingTransactionFilter", true)
	tooMuch := install("eth_newFilter", map[string]any{})
	// Filters have been notified once subscribers are.
	subscribe := func(name string) *liveSocket {
		socket := l.dial(firstKey)
		socket.send(requestOf(t, "eth_subscribe", name))
		socket.receive()
		return socket
	}
	heads, pending := subscribe("newHeads"), subscribe("newPendingTransactions")

	wanted := map[string][]string{}
	for range 6 {
		wanted["hashes"] = append(wanted["hashes"], l.sendTransaction())
		pending.receive()
	}
	head := made.genesis
	for range 5 {
		head = made.block(head, 3)
		l.add(head)
		l.setHead(head)
		wanted["blocks"] = append(wanted["blocks"], head.Hash().Hex())
		for _, tx := range head.Transactions() {
			wanted["logs"] = append(wanted["logs"], tx.Hash().Hex())
		}
		heads.receive()
	}
	for _, c := range []struct {
		name, id string
		limit    int // for some of all, of which there are more than twice as many
		want     []string
	}{
		{"logs", logs, 4500, wanted["logs"]},
		{"blocks", blocks, 150, wanted["blocks"]},
		{"hashes", hashes, 150, wanted["hashes"]},
		{"whole", whole, 1500, wanted["hashes"]},
	} {
		var got []string
		polls := 0
		for ; polls < 100; polls++ {
			a := ask(c.limit, "eth_getFilterChanges", c.id)
			if a.Error != nil {
				t.Fatalf("%s: %s", c.name, a.Error)
			}
			found := hashesIn(a.Result)
			if len(found) == 0 {
				break
			}
			got = append(got, found...)
		}
		if polls < 3 || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d polls gave %v, want %v", c.name, polls, got, c.want)
		}
	}
	if a := ask(1000, "eth_getFilterChanges", tooMuch); !bytes.Contains(a.Error, []byte("response too large")) {
		t.Errorf("a block that does not fit: %s%s", a.Result, a.Error)
	}
	if a := ask(1<<20, "eth_getFilterChanges", tooMuch); !bytes.Contains(a.Error, []byte("filter not found")) {
		t.Errorf("after a block that did not fit: %s%s", a.Result, a.Error)
	}
}

// noMemory is a holder that has no memory now.
type noMemory struct{}

func (noMemory) Drop([]byte)      {}
func (noMemory) Hold(int) error   { return &jsonrpc.Error{Code: -32005, Message: "busy"} }
func (noMemory) Reserve(int) bool { return false }

// TestFilterLosesNothing: logs whose answer has no place in a batch, or for which there is no memory
// now, are in the answer to a later poll.
func TestFilterLosesNothing(t *testing.T) {
	l, made := serveLive(t, ingest.DefaultDepths(), api.Config{}), newBranches(t)
	var installed answer
	raw, _ := limited(t, l.methods, 1<<20, requestOf(t, "eth_newFilter", map[string]any{}))
	var id string
	if err := errors.Join(json.Unmarshal(raw, &installed), json.Unmarshal(installed.Result, &id)); err != nil {
		t.Fatal(err)
	}
	heads := l.dial(firstKey)
	heads.send(requestOf(t, "eth_subscribe", "newHeads"))
	heads.receive()
	var want []string
	for head := made.genesis; len(want) < 15; heads.receive() {
		head = made.block(head, 3)
		l.add(head)
		l.setHead(head)
		for _, tx := range head.Transactions() {
			want = append(want, tx.Hash().Hex())
		}
	}
	request := requestOf(t, "eth_getFilterChanges", id)
	server := jsonrpc.NewServer(l.methods, jsonrpc.Config{BatchBytes: 4500})
	if refused := server.Answer(context.WithValue(t.Context(), jsonrpc.HolderKey{}, noMemory{}), []byte(request), nil); !bytes.Contains(refused, []byte("busy")) {
		t.Errorf("without memory: %s", refused)
	}
	var got []string
	for range 20 {
		var answers []answer
		raw := server.Answer(t.Context(), []byte("["+request+","+request+"]"), nil)
		if err := json.Unmarshal(raw, &answers); err != nil || len(answers) != 2 {
			t.Fatalf("%v: %s", err, raw)
		}
		got = append(append(got, hashesIn(answers[0].Result)...), hashesIn(answers[1].Result)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// hashesIn returns the hashes of an array of them, of logs or of transactions.
func hashesIn(raw json.RawMessage) (hashes []string) {
	if json.Unmarshal(raw, &hashes) == nil {
		return hashes
	}
	var objects []struct{ TransactionHash, Hash string }
	_ = json.Unmarshal(raw, &objects) // what is no array has none
	hashes = nil
	for _, o := range objects {
		hashes = append(hashes, o.TransactionHash+o.Hash)
	}
	return hashes
}
