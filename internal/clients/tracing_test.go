package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/internal/node"
)

// replayed is a call that a tool makes, and texts that its answer must have.
type replayed struct {
	method string
	params string // JSON, with BLOCK, NEXT, HASH, TX, TOKEN, HOLDER and TRANSFER in place of what the chain has
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

// tools are the calls of tools, most of which trace, from their sources, in their order.
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
			{"debug_traceTransaction", `["TX",{"enableMemory":true,"disableStack":false,"disableStorage":true,"enableReturnData":false,"timeout":"5s"}]`, []string{`"structLogs":[`}},
			{"trace_replayBlockTransactions", `["BLOCK",["trace"]]`, []string{`"transactionHash":"TX"`}},
			{"trace_replayTransaction", `["TX",["trace"]]`, []string{`"traceAddress":[]`}},
			{"trace_block", `["BLOCK"]`, []string{`"blockHash":"HASH"`}},
			{"eth_getBlockReceipts", `["BLOCK"]`, []string{`"transactionHash":"TX"`}},
			{"eth_call", `[{"data":"0x18160ddd","to":"TOKEN","from":null},"latest"]`, []string{`0x`}},
			{"eth_getUncleByBlockHashAndIndex", `["HASH","0x0"]`, []string{`null`}},
			{"txpool_content", `[]`, []string{`"pending":{`}},
		},
		"Ponder": {
			{"debug_traceBlockByNumber", `["BLOCK",{"tracer":"callTracer"}]`, []string{`"txHash":"TX"`}},
			{"debug_traceBlockByHash", `["HASH",{"tracer":"callTracer"}]`, []string{`"txHash":"TX"`}},
		},
		"graph-node": {
			{"eth_getBlockByHash", `["HASH",true]`, []string{`"hash":"HASH"`}},
			{"trace_filter", `[{"fromBlock":"BLOCK","toBlock":"NEXT","toAddress":["TOKEN"]}]`, []string{`"to":"TOKEN"`, `"traceAddress"`}},
			{"trace_filter", `[{"fromBlock":"BLOCK","toBlock":"NEXT","fromAddress":[],"toAddress":["TOKEN"],"mode":"union"}]`, []string{`"to":"TOKEN"`}},
			{"trace_filter", `[{"fromBlock":"BLOCK","toBlock":"BLOCK","fromAddress":[],"toAddress":[],"mode":"union"}]`, []string{`"blockHash":"HASH"`, `"transactionHash":"TX"`}},
			{"eth_getBlockReceipts", `["HASH"]`, []string{`"transactionHash":"TX"`}},
			{"eth_getBlockReceipts", `[{"blockHash":"HASH"}]`, []string{`"transactionHash":"TX"`}},
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"NEXT","address":["TOKEN"],"topics":[["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]]}]`, []string{`"address":"TOKEN"`}},
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"NEXT","address":"TOKEN","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]}]`, []string{`"address":"TOKEN"`}},
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"NEXT","address":"TOKEN","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x000000000000000000000000000000000000000000000000000000000000beef",["0x000000000000000000000000000000000000000000000000000000000000beef"]]}]`, []string{`[]`}},
			{"eth_call", `[{"to":"TOKEN","gas":"0x2faf080","input":"0x18160ddd","data":"0x18160ddd"},{"blockHash":"HASH"}]`, []string{`0x`}},
			{"eth_getBalance", `["HOLDER",{"blockHash":"HASH"}]`, []string{`0x`}},
			{"eth_getCode", `["TOKEN",{"blockHash":"HASH"}]`, []string{`0x60`}},
		},
		"op-node": {
			{"eth_getBlockByHash", `["HASH",false]`, []string{`"receiptsRoot":"0x`}},
			{"eth_getBlockReceipts", `["HASH"]`, []string{`"transactionHash":"TX"`}},
			{"debug_getRawReceipts", `["HASH"]`, []string{`["0x`}},
			{"eth_getProof", `["TOKEN",["0x0000000000000000000000000000000000000000000000000000000000000001"],"HASH"]`, []string{`"storageProof":[{"key":"0x0000000000000000000000000000000000000000000000000000000000000001"`}},
			{"eth_getStorageAt", `["TOKEN","0x0000000000000000000000000000000000000000000000000000000000000001","HASH"]`, []string{`"0x`}},
			{"eth_getCode", `["TOKEN","HASH"]`, []string{`"0x60`}},
		},
		"op-challenger": {
			{"eth_getBalance", `["HOLDER",{"blockHash":"HASH"}]`, []string{`"0x`}},
			{"eth_call", `[{"from":"0x0000000000000000000000000000000000000000","to":"TOKEN","input":"0x18160ddd"},{"blockHash":"HASH"}]`, []string{`"0x`}},
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
		"chifra": {
			{"trace_block", `["BLOCK"]`, []string{`"transactionHash":"TX"`, `"transactionPosition":0`}},
			{"trace_transaction", `["TX"]`, []string{`"transactionHash":"TX"`}},
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"BLOCK","address":null,"topics":null}]`, []string{`"blockHash":"HASH"`}},
			{"eth_getTransactionByBlockNumberAndIndex", `["BLOCK","0x0"]`, []string{`"hash":"TX"`}},
			{"eth_getUncleCountByBlockNumber", `["BLOCK"]`, []string{`"0x0"`}},
		},
		"Shovel": {
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"NEXT","address":null,"topics":[["TRANSFER"]]}]`, []string{`"address":"TOKEN"`}},
			{"eth_getLogs", `[{"fromBlock":"BLOCK","toBlock":"NEXT","address":["TOKEN"],"topics":[["TRANSFER"]]}]`, []string{`"address":"TOKEN"`}},
		},
		"SubQuery": {
			{"eth_getLogs", `[{"blockHash":"HASH"}]`, []string{`"blockHash":"HASH"`}},
		},
		"rindexer": {
			{"debug_traceBlockByNumber", `["BLOCK",{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true}}]`, []string{`"txHash":"TX"`}},
			{"eth_call", `[{"to":"TOKEN","data":"0x18160ddd"},"BLOCK"]`, []string{`0x`}},
		},
		"Ape": {
			{"ots_getContractCreator", `["TOKEN"]`, []string{`"creator":"0x`}},
			{"eth_call", `[{"to":"TOKEN","from":"HOLDER","value":"0x0","data":"0x18160ddd","type":"0x2","accessList":[]},"BLOCK"]`, []string{`0x`}},
			{"debug_traceCall", `[{"to":"TOKEN","from":"HOLDER","value":"0x0","data":"0x18160ddd","type":"0x2","accessList":[]},"BLOCK"]`, []string{`"structLogs":[`}},
		},
		"Brownie": {
			{"debug_traceTransaction", `["TX",{"disableStorage":true,"enableMemory":true}]`, []string{`"structLogs":[`, `"memory":[`}},
		},
		"titanoboa": {
			{"debug_traceCall", `[{"from":"HOLDER","to":"TOKEN","gas":"0xbebc200","data":"0x18160ddd"},"BLOCK",{"tracer":"prestateTracer"}]`, []string{`"TOKEN":{`, `"storage"`}},
			{"debug_traceTransaction", `["TX",{"tracer":"callTracer","onlyTopCall":true}]`, []string{`"from"`}},
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
			{"erigon_getHeaderByNumber", `["latest"]`, []string{`"hash"`}},
			{"ots_getBlockDetails", `[30]`, []string{`"issuance"`, `"totalFees"`, `"transactionCount"`}},
			{"ots_getBlockDetailsByHash", `["HASH"]`, []string{`"issuance"`}},
			{"ots_searchTransactionsBefore", `["TOKEN",0,25]`, []string{`"txs":[{`, `"firstPage":true`, `"lastPage":false`}},
			{"ots_searchTransactionsAfter", `["TOKEN",0,25]`, []string{`"txs":[{`, `"lastPage":true`}},
			{"ots_getContractCreator", `["TOKEN"]`, []string{`"creator":"0x`}},
			{"ots_getTransactionBySenderAndNonce", `["HOLDER",0]`, nil},
			{"ots_getBlockTransactions", `[30,0,25]`, []string{`"receipts"`}},
			{"ots_traceTransaction", `["TX"]`, []string{`"type":"CALL"`}},
			{"ots_getInternalOperations", `["TX"]`, nil},
			{"ots_getTransactionError", `["TX"]`, []string{`0x`}},
			{"ots_hasCode", `["TOKEN","latest"]`, []string{`true`}},
			{"ots_hasCode", `["TOKEN",30]`, []string{`true`}},
			{"trace_replayTransaction", `["TX",["vmTrace"]]`, []string{`"vmTrace":{`}},
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
	examples := demoExamples(t)
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
		"TRANSFER", "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
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
