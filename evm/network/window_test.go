package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/gateway"
	"ashlar/history/retention"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// anyKey is a [gateway.Keys] that accepts every key.
type anyKey struct{}

func (anyKey) Check(string) (*account.Key, bool) { return new(account.Key), true }

const windowKey = "0123456789abcdef0123456789abcdef"

// windowServer is a network with a window that follows a node and is served.
type windowServer struct {
	t       *testing.T
	node    *fakenode.Node
	chain   []*types.Block // the genesis first
	network *network
	remover *window.Remover
	at      string // address
}

// serveWindow serves a network of which only the test moves the window.
func serveWindow(t *testing.T, w retention.Window) *windowServer {
	t.Helper()
	genesis := ingesttest.Genesis(t)
	s := &windowServer{t: t, chain: append([]*types.Block{genesis.ToBlock()}, ingesttest.Chain(t)...)}
	var err error
	if s.node, err = fakenode.New(fakenode.Options{ChainID: genesis.Config.ChainID.Uint64(), Raw: true, Subscriptions: true}, s.chain[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.node.Close)
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, nil)
	opened, err := Family{}.Open(t.Context(), store, &Entries{Source: family.Sources{s.node.SocketURL()}}, false)
	if err != nil {
		t.Fatal(err)
	}
	methods, err := opened.Serve(t.Context(), family.Service{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.network = opened.(*network)
	s.remover = window.New(s.network.archive, store, w, window.Options{Ancestors: 1})
	handler, err := gateway.New(gateway.Config{Keys: anyKey{}, Networks: []gateway.Network{{Name: "test", Methods: methods}}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Listen(t.Context(), gateway.ListenConfig{Address: "127.0.0.1:0"}, handler)
	if err != nil {
		t.Fatal(err)
	}
	s.at = server.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 2)
	go func() { ended <- opened.Run(ctx) }()
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// grow lets the node have the chain up to a head, and waits until it is followed and settled up
// to a block.
func (s *windowServer) grow(head, settled uint64) {
	s.t.Helper()
	s.node.Set(s.chain[:head+1], settled, settled)
	await.Until(s.t, fmt.Sprintf("the head %d and the settled block %d", head, settled), func() bool {
		status, err := s.network.Status(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return status.Head == head && status.Settled == settled
	})
}

// move moves the window and removes what is older.
func (s *windowServer) move() {
	s.t.Helper()
	if err := s.remover.Move(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

type windowAnswer struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    any
	}
}

// ask calls a method over HTTP.
func (s *windowServer) ask(method, params string) (a windowAnswer) {
	s.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	response, err := http.Post("http://"+s.at+"/v3/"+windowKey, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// answers checks that a call has a result.
func (s *windowServer) answers(method, params string) {
	s.t.Helper()
	if a := s.ask(method, params); a.Error != nil || string(a.Result) == "null" {
		s.t.Errorf("%s %s: %s %+v, want an answer", method, params, a.Result, a.Error)
	}
}

// pruned checks that a call is refused, with an end of the message.
func (s *windowServer) pruned(method, params, end string) {
	s.t.Helper()
	if a := s.ask(method, params); a.Error == nil || a.Error.Code != 4444 ||
		!strings.HasPrefix(a.Error.Message, "pruned history unavailable: ") || !strings.HasSuffix(a.Error.Message, end) {
		s.t.Errorf("%s %s: %s %+v, want the error 4444 that ends with %q", method, params, a.Result, a.Error, end)
	}
}

// begins checks where eth_capabilities and earliest say that the history begins.
func (s *windowServer) begins(want archive.Extent) {
	s.t.Helper()
	var c map[string]struct{ OldestBlock hexutil.Uint64 }
	if a := s.ask("eth_capabilities", `[]`); json.Unmarshal(a.Result, &c) != nil {
		s.t.Fatalf("eth_capabilities: %s %+v", a.Result, a.Error)
	}
	for kind, first := range map[string]uint64{
		"state": want.State, "stateproofs": want.Tries, "tx": want.Blocks, "logs": want.Blocks, "receipts": want.Blocks, "blocks": want.Blocks,
	} {
		if got, ok := c[kind]; !ok || uint64(got.OldestBlock) != first {
			s.t.Errorf("eth_capabilities: %s from block %d on, want %d", kind, got.OldestBlock, first)
		}
	}
	var earliest struct{ Number hexutil.Uint64 }
	if a := s.ask("eth_getBlockByNumber", `["earliest",false]`); json.Unmarshal(a.Result, &earliest) != nil || uint64(earliest.Number) != want.Blocks {
		s.t.Errorf("earliest: block %d, %+v, want %d", earliest.Number, a.Error, want.Blocks)
	}
}

// check asks for what is just within the window and for what is just below it.
func (s *windowServer) check(want archive.Extent) {
	s.t.Helper()
	s.begins(want)
	noState := fmt.Sprintf("(the first block with state is %d)", want.State)
	for _, q := range []struct{ method, params string }{ // %s is a block
		{"eth_getBalance", `["0x00000000000000000000000000000000000000aa",%s]`},
		{"eth_getAccountInfo", `["0x00000000000000000000000000000000000000aa",%s]`},
		{"eth_call", `[{"to":"0x00000000000000000000000000000000000000aa"},%s]`},
		{"eth_callMany", `[[{"transactions":[{"to":"0x00000000000000000000000000000000000000aa"}]}],{"blockNumber":%s}]`},
		{"eth_createAccessList", `[{"to":"0x00000000000000000000000000000000000000aa"},%s]`},
		{"eth_estimateGas", `[{"to":"0x00000000000000000000000000000000000000aa"},%s]`},
	} {
		s.answers(q.method, fmt.Sprintf(q.params, quoted(want.State)))
		s.pruned(q.method, fmt.Sprintf(q.params, quoted(want.State-1)), noState)
	}
	for method, more := range map[string]string{
		"debug_traceBlockByNumber": "", "trace_block": "", "trace_replayBlockTransactions": `,["trace","stateDiff"]`,
	} {
		s.answers(method, `[`+quoted(want.State+1)+more+`]`)
		s.pruned(method, `[`+quoted(want.State)+more+`]`, noState)
	}
	s.answers("debug_getModifiedAccountsByNumber", fmt.Sprintf("[%d]", want.State+1))
	s.pruned("debug_getModifiedAccountsByNumber", fmt.Sprintf("[%d]", want.State), noState)
	s.checkTries(want)
	for _, method := range []string{"ots_getTransactionBySenderAndNonce", "eth_getTransactionBySenderAndNonce"} {
		s.answers(method, s.senderAndNonce(want.State+1))
		s.pruned(method, s.senderAndNonce(want.State), noState)
	}
	noBlock := fmt.Sprintf("(the first block is %d)", want.Blocks)
	for method, more := range map[string]string{"eth_getBlockByNumber": ",true", "eth_getBlockReceipts": "", "eth_getBlockTransactionCountByNumber": ""} {
		s.answers(method, `[`+quoted(want.Blocks)+more+`]`)
		s.pruned(method, `[`+quoted(want.Blocks-1)+more+`]`, noBlock)
	}
	logs := func(from uint64) string { return `[{"fromBlock":` + quoted(from) + `,"toBlock":"latest"}]` }
	s.answers("eth_getLogs", logs(want.Blocks))
	s.pruned("eth_getLogs", logs(want.Blocks-1), noBlock)
	s.pruned("eth_getLogs", `[{"fromBlock":"earliest","toBlock":`+quoted(want.Blocks-1)+`}]`, noBlock)
	s.answers("eth_getBlockByNumber", `["0x0",false]`)
	for _, method := range []string{"eth_getLogs", "trace_filter"} { // the genesis is stored, the blocks between are not
		s.pruned(method, `[{"fromBlock":"earliest","toBlock":"0x0"}]`, noBlock)
	}
	s.checkEvents(want.Blocks)
}

// checkTries asks for what is made of trie nodes: at the first block that has them, and at older ones, of
// which the states may be stored.
func (s *windowServer) checkTries(want archive.Extent) {
	s.t.Helper()
	for method, params := range map[string]string{ // %s is a block
		"eth_getProof":       `["0x00000000000000000000000000000000000000aa",[],%s]`,
		"eth_simulateV1":     `[{"blockStateCalls":[{}]},%s]`,
		"debug_accountRange": `[%s,"0x",5,true,true,true]`,
	} {
		s.answers(method, fmt.Sprintf(params, quoted(want.Tries)))
		for below := want.State; below < want.Tries; below++ {
			s.pruned(method, fmt.Sprintf(params, quoted(below)), fmt.Sprintf("(the first block with trie nodes is %d)", want.Tries))
		}
		s.pruned(method, fmt.Sprintf(params, quoted(want.State-1)), fmt.Sprintf("(the first block with state is %d)", want.State))
	}
	s.answers("debug_executionWitness", `[`+quoted(want.Tries+1)+`]`)
	s.pruned("debug_executionWitness", `[`+quoted(want.Tries)+`]`, fmt.Sprintf("(the first block with trie nodes is %d)", want.Tries))
}

// senderAndNonce returns those of the first transaction of a block as parameters.
func (s *windowServer) senderAndNonce(block uint64) string {
	s.t.Helper()
	tx := s.chain[block].Transactions()[0]
	sender, err := types.Sender(types.LatestSigner(s.network.archive.Genesis().Config), tx)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf(`["%#x",%d]`, sender, tx.Nonce())
}

// checkEvents asks for events: without from_block they begin with the first block, and a block
// below it is refused.
func (s *windowServer) checkEvents(first uint64) {
	s.t.Helper()
	type page struct {
		Events []struct {
			Number uint64 `json:"block_number"`
		}
	}
	events := func(from string) (p page) {
		s.t.Helper()
		a := s.ask("rollup_getEvents", `[{`+from+`"chunk_size":1024}]`)
		if a.Error != nil || json.Unmarshal(a.Result, &p) != nil || len(p.Events) == 0 || p.Events[0].Number < first {
			s.t.Errorf("rollup_getEvents %s: %.300s %+v, want events from block %d on", from, a.Result, a.Error, first)
		}
		return p
	}
	from := func(number uint64) string { return fmt.Sprintf(`"from_block":{"block_number":%d},`, number) }
	if all, named := events(""), events(from(first)); len(all.Events) != len(named.Events) {
		s.t.Errorf("rollup_getEvents: %d events without from_block, %d from block %d on", len(all.Events), len(named.Events), first)
	}
	a := s.ask("rollup_getEvents", `[{`+from(first-1)+`"chunk_size":1024}]`)
	if want := fmt.Sprintf("block %d is not held: this network begins with block %d", first-1, first); a.Error == nil || a.Error.Code != 24 || a.Error.Data != want {
		s.t.Errorf("rollup_getEvents from block %d: %.300s %+v, want the error 24 with %q", first-1, a.Result, a.Error, want)
	}
}

// checkGone checks that questions by the hash of a block below the window, and of its
// transactions, are refused. Once the block is removed, its hash may be unknown.
func (s *windowServer) checkGone(block *types.Block, removed bool) {
	s.t.Helper()
	hash := `["` + block.Hash().Hex() + `"`
	for method, params := range map[string]string{
		"eth_getBlockByHash": hash + `,false]`, "eth_getBlockReceipts": hash + `]`, "eth_getBlockTransactionCountByHash": hash + `]`,
		"eth_getUncleCountByBlockHash": hash + `]`, "eth_getLogs": `[{"blockHash":"` + block.Hash().Hex() + `"}]`,
		"eth_getTransactionByHash":  `["` + block.Transactions()[0].Hash().Hex() + `"]`,
		"eth_getTransactionReceipt": `["` + block.Transactions()[0].Hash().Hex() + `"]`,
	} {
		a := s.ask(method, params)
		refused := a.Error != nil && a.Error.Code == 4444
		unknown := string(a.Result) == "null" || method == "eth_getLogs" && a.Error != nil && a.Error.Message == "unknown block"
		if !refused && !(removed && unknown) {
			s.t.Errorf("%s of block %d, removed: %t: %.300s %+v", method, block.NumberU64(), removed, a.Result, a.Error)
		}
	}
}

func quoted(block uint64) string { return fmt.Sprintf("%q", hexutil.EncodeUint64(block)) }

// TestServedWindow moves the window of a network that is served and follows. Every question is
// answered or refused with the first block, and a subscription gets every head.
func TestServedWindow(t *testing.T) {
	s := serveWindow(t, retention.Window{Proofs: 4, State: 8, History: 12})
	socket, _, err := websocket.Dial(t.Context(), "ws://"+s.at+"/ws/v3/"+windowKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := socket.Read(t.Context()); err != nil || strings.Contains(string(text), "error") {
		t.Fatalf("%s %v", text, err)
	}
	next := uint64(1)
	heads := func(last uint64) {
		t.Helper()
		for ; next <= last; next++ {
			_, text, err := socket.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				Params struct {
					Result struct{ Number hexutil.Uint64 }
				}
			}
			if json.Unmarshal(text, &m) != nil || uint64(m.Params.Result.Number) != next {
				t.Fatalf("%s, want head %d", text, next)
			}
		}
	}
	s.grow(20, 18)
	heads(20)
	s.begins(archive.Extent{})
	for n := range uint64(20) { // fills the caches
		s.answers("eth_getBlockByNumber", `[`+quoted(n+1)+`,true]`)
		s.answers("eth_getBlockByHash", `["`+s.chain[n+1].Hash().Hex()+`",true]`)
		s.answers("eth_getTransactionReceipt", `["`+s.chain[n+1].Transactions()[0].Hash().Hex()+`"]`)
	}
	s.move()
	s.check(archive.Extent{Blocks: 7, State: 11, Tries: 15})
	s.checkGone(s.chain[6], true)
	s.grow(40, 38)
	heads(40)
	s.check(archive.Extent{Blocks: 7, State: 11, Tries: 15})
	if err := s.network.archive.SetFirst(t.Context(), archive.Extent{Blocks: 27, State: 31, Tries: 35}); err != nil {
		t.Fatal(err)
	}
	for _, removed := range []bool{false, true} {
		if removed {
			s.move()
		}
		s.check(archive.Extent{Blocks: 27, State: 31, Tries: 35})
		s.checkGone(s.chain[26], removed)
	}
	if s.remover.Rows() == 0 || s.remover.Removing() {
		t.Errorf("%d rows removed, removing: %t", s.remover.Rows(), s.remover.Removing())
	}
}
