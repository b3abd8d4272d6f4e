package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/source/demo"
	"ashlar/internal/node"
)

// replayed is a call that a tool makes, and texts that its answer must have.
type replayed struct {
	method string
	params string // JSON, with BLOCK, NEXT, HASH, TX, TOKEN and HOLDER in place of what the chain has
	want   []string
}

// bundlerTracer is like the tracers in JavaScript of account-abstraction bundlers: it counts
// opcodes by frame, and collects what keccak256 was asked of.
const bundlerTracer = `{
	frames: [], current: {opcodes: {}, access: {}}, keccak: [], last: "",
	fault: function(log, db) { this.failed = log.getError() },
	enter: function(frame) { this.frames.push({type: frame.getType(), from: toHex(frame.getFrom()), to: toHex(frame.getTo()), input: toHex(frame.getInput()).slice(0, 10)}) },
	exit: function(frame) { this.frames.push({type: frame.getError() ? "REVERT" : "RETURN", gasUsed: frame.getGasUsed()}) },
	step: function(log, db) {
		var name = log.op.toString();
		this.current.opcodes[name] = (this.current.opcodes[name] || 0) + 1;
		if (name === "SLOAD" || name === "SSTORE") {
			var slot = toWord(log.stack.peek(0).toString(16)), address = log.contract.getAddress();
			var access = this.current.access[toHex(address)] = this.current.access[toHex(address)] || {reads: {}, writes: {}};
			if (name === "SLOAD") access.reads[toHex(slot)] = toHex(db.getState(address, slot));
			else access.writes[toHex(slot)] = 1;
		} else if (name === "KECCAK256" || name === "SHA3") {
			var offset = parseInt(log.stack.peek(0).toString()), length = parseInt(log.stack.peek(1).toString());
			if (length > 20 && length < 512) this.keccak.push(toHex(log.memory.slice(offset, offset + length)));
		}
		this.last = name;
	},
	result: function(ctx, db) { return {calls: this.frames, current: this.current, keccak: this.keccak, type: ctx.type, last: this.last} }
}`

// tools are the calls of tools that trace, from their sources, in their order.
func tools() map[string][]replayed {
	script, err := json.Marshal(bundlerTracer)
	if err != nil {
		panic(err)
	}
	transfer := `{"from":"HOLDER","to":"TOKEN","data":"0xa9059cbb000000000000000000000000000000000000000000000000000000000000beef0000000000000000000000000000000000000000000000000000000000000001"}`
	return map[string][]replayed{
		"Blockscout": {
			{"eth_getBlockByNumber", `["BLOCK",true]`, []string{`"transactions":[{`}},
			{"eth_getTransactionReceipt", `["TX"]`, []string{`"status":"0x1"`}},
			{"debug_traceBlockByNumber", `["BLOCK",{"tracer":"callTracer","timeout":"120s"}]`, []string{`"txHash":"TX"`, `"type":"CALL"`}},
			{"debug_traceTransaction", `["TX",{"tracer":"callTracer","timeout":"5s"}]`, []string{`"from"`}},
			{"debug_traceTransaction", `["TX",{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true}}]`, []string{`"gasUsed"`}},
			{"trace_replayBlockTransactions", `["BLOCK",["trace"]]`, []string{`"transactionHash":"TX"`}},
		},
		"Ponder": {
			{"debug_traceBlockByNumber", `["BLOCK",{"tracer":"callTracer"}]`, []string{`"txHash":"TX"`}},
			{"debug_traceBlockByHash", `["HASH",{"tracer":"callTracer"}]`, []string{`"txHash":"TX"`}},
		},
		"graph-node": {
			{"eth_getBlockByHash", `["HASH",true]`, []string{`"hash":"HASH"`}},
			{"trace_filter", `[{"fromBlock":"BLOCK","toBlock":"NEXT","toAddress":["TOKEN"]}]`, []string{`"to":"TOKEN"`, `"traceAddress"`}},
			{"eth_getBlockReceipts", `["HASH"]`, []string{`"transactionHash":"TX"`}},
		},
		"Safe": {
			{"trace_block", `["BLOCK"]`, []string{`"transactionHash":"TX"`}},
			{"trace_filter", `[{"fromBlock":"BLOCK","toBlock":"NEXT","toAddress":["TOKEN"]}]`, []string{`"to":"TOKEN"`}},
			{"trace_transaction", `["TX"]`, []string{`"transactionHash":"TX"`}},
		},
		"Subsquid": {
			{"debug_traceBlockByHash", `["HASH",{"tracer":"callTracer","tracerConfig":{"onlyTopCall":false,"withLog":true},"timeout":"20s"}]`, []string{`"logs"`}},
			{"debug_traceBlockByHash", `["HASH",{"tracer":"prestateTracer","tracerConfig":{"onlyTopCall":false,"diffMode":true}}]`, []string{`"post"`}},
			{"trace_replayBlockTransactions", `["BLOCK",["trace","stateDiff"]]`, []string{`"stateDiff":{`}},
		},
		"cryo": {
			{"trace_replayBlockTransactions", `["BLOCK",["vmTrace"]]`, []string{`"vmTrace":{`}},
			{"trace_replayTransaction", `["TX",["stateDiff"]]`, []string{`"stateDiff":{`}},
			{"debug_traceTransaction", `["TX",{"tracer":"4byteTracer"}]`, nil},
			{"debug_traceTransaction", `["TX",{"tracer":"prestateTracer"}]`, []string{`"balance"`}},
			{"debug_traceTransaction", `["TX",{"tracer":"opcountTracer"}]`, nil},
		},
		"Otterscan": {
			{"erigon_getHeaderByNumber", `[1]`, []string{`"number":"0x1"`}},
			{"ots_getApiLevel", `[]`, []string{`8`}},
			{"ots_getBlockDetails", `[30]`, []string{`"issuance"`}},
			{"ots_getBlockTransactions", `[30,0,25]`, []string{`"receipts"`}},
			{"ots_traceTransaction", `["TX"]`, []string{`"type":"CALL"`}},
			{"ots_getInternalOperations", `["TX"]`, nil},
			{"ots_getTransactionError", `["TX"]`, []string{`0x`}},
			{"ots_hasCode", `["TOKEN","latest"]`, []string{`true`}},
			{"trace_replayTransaction", `["TX",["stateDiff"]]`, []string{`"stateDiff":{`}},
		},
		"a bundler": {
			{"debug_traceCall", `[` + transfer + `,"latest",{"tracer":` + string(script) + `,"stateOverrides":{"HOLDER":{"balance":"0xffffffffffffffff"}}}]`, []string{`"SSTORE"`, `"reads"`, `"keccak":["0x`}},
			{"debug_traceCall", `[` + transfer + `,"latest",{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}]`, []string{`"post"`}},
			{"debug_traceCall", `[` + transfer + `,"latest",{"tracer":"erc7562Tracer"}]`, []string{`"accessedSlots"`}},
		},
	}
}

// TestToolsTrace replays what tools ask that trace.
func TestToolsTrace(t *testing.T) {
	t.Parallel()
	s := serve(t)
	shown, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := shown.Examples()
	if err != nil {
		t.Fatal(err)
	}
	var at struct {
		Hash         string
		Transactions []string
	}
	client := node.NewClient(s.url)
	if err := client.Call(t.Context(), &at, "eth_getBlockByNumber", fmt.Sprintf("%#x", block), false); err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer(
		"BLOCK", fmt.Sprintf("%#x", block), "NEXT", fmt.Sprintf("%#x", block+9), "HASH", at.Hash, "TX", at.Transactions[0],
		"TOKEN", strings.ToLower(examples.Token.Hex()), "HOLDER", strings.ToLower(examples.Holder.Hex()),
	)
	for tool, calls := range tools() {
		t.Run(tool, func(t *testing.T) {
			for _, c := range calls {
				var params []any
				if err := json.Unmarshal([]byte(names.Replace(c.params)), &params); err != nil {
					t.Fatal(err)
				}
				var answer json.RawMessage
				if err := client.Call(t.Context(), &answer, c.method, params...); err != nil {
					t.Errorf("%s %s: %v", c.method, c.params, err)
					continue
				}
				for _, want := range c.want {
					if want = names.Replace(want); !strings.Contains(string(answer), want) {
						t.Errorf("%s %.80s: %.300s…, expected %s", c.method, c.params, answer, want)
					}
				}
			}
		})
	}
}
