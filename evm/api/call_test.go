package api_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/params"
)

// The contracts of the chain that calls are tested on.
var (
	echoAddress   = common.HexToAddress("0xec40") // returns its input
	slotAddress   = common.HexToAddress("0x5107") // returns slot 0, which is 42
	revertAddress = common.HexToAddress("0x4e44") // reverts with Error("no")
	loopAddress   = common.HexToAddress("0x1009") // never ends
	richAddress   = common.HexToAddress("0x41c4") // has a little
)

const revertPayload = "0x08c379a0" +
	"0000000000000000000000000000000000000000000000000000000000000020" +
	"0000000000000000000000000000000000000000000000000000000000000002" +
	"6e6f000000000000000000000000000000000000000000000000000000000000"

// callServer answers about a chain that is a genesis block only.
func callServer(t testing.TB) *jsonrpc.Server {
	t.Helper()
	loop, start := program.New().Jumpdest()
	payload := hexutil.MustDecode(revertPayload)
	slot := program.New().Push(0).Op(vm.SLOAD).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	config := *params.MergedTestChainConfig
	config.AmsterdamTime = nil
	genesis := &core.Genesis{
		Config: &config, GasLimit: 30_000_000, BaseFee: big.NewInt(7), Difficulty: new(big.Int),
		Alloc: types.GenesisAlloc{
			echoAddress:   {Code: program.New().Op(vm.CALLDATASIZE).Push(0).Push(0).Op(vm.CALLDATACOPY, vm.CALLDATASIZE).Push(0).Op(vm.RETURN).Bytes()},
			slotAddress:   {Code: slot, Storage: map[common.Hash]common.Hash{{}: common.BigToHash(big.NewInt(42))}},
			revertAddress: {Code: program.New().Mstore(payload, 0).Push(len(payload)).Push(0).Op(vm.REVERT).Bytes()},
			loopAddress:   {Code: loop.Jump(start).Bytes()},
			richAddress:   {Balance: big.NewInt(1_000_000)},
		},
	}
	store, err := pebble.Open(pebble.Options{Path: "chain", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	history, err := archive.Create(t.Context(), store, genesis)
	if err != nil {
		t.Fatal(err)
	}
	delta, err := execute.Genesis(t.Context(), genesis)
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Append(t.Context(), delta); err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(genesis.Config)
	if err != nil {
		t.Fatal(err)
	}
	return jsonrpc.NewServer(methodsOf(api.New(query.NewChain(history, nil, executor), api.Config{})).Handlers(), jsonrpc.Config{})
}

// TestCalls is a conversation: method, parameters, answer.
func TestCalls(t *testing.T) {
	const (
		word42  = `"0x000000000000000000000000000000000000000000000000000000000000002a"`
		zeroKey = `0x0000000000000000000000000000000000000000000000000000000000000000`
		key0    = `"` + zeroKey + `"`
		word1   = `"0x0000000000000000000000000000000000000000000000000000000000000001"`
	)
	tests := []struct{ name, method, params, want string }{
		{"a slot", "eth_call", `[{"to":"SLOT"},"latest"]`, word42},
		{"no block is the latest", "eth_call", `[{"to":"SLOT"}]`, word42},
		{"by number", "eth_call", `[{"to":"SLOT"},"0x0"]`, word42},
		{"data", "eth_call", `[{"to":"ECHO","data":"0xAbCd"}]`, `"0xabcd"`},
		{"input goes before data", "eth_call", `[{"to":"ECHO","data":"0xabcd","input":"0x01"}]`, `"0x01"`},
		{"no data", "eth_call", `[{"to":"ECHO","data":null,"from":null}]`, `"0x"`},
		{"null after a value", "eth_call", `[{"to":"ECHO","data":"0x01","data":null}]`, `"0x"`},
		{"null after the input", "eth_call", `[{"to":"ECHO","data":"0x01","input":"0x02","input":null}]`, `"0x01"`},
		{"a value after null", "eth_call", `[{"to":null,"to":"ECHO","data":"0x01"}]`, `"0x01"`},
		{"unknown members", "eth_call", `[{"to":"ECHO","type":"0x2","kzg":[{}]}]`, `"0x"`},
		{"nobody there", "eth_call", `[{"to":"RICH"},"latest"]`, `"0x"`},
		{"all members", "eth_call", `[{"from":"RICH","to":"ECHO","gas":"0xffff","maxFeePerGas":"0x8","maxPriorityFeePerGas":"0x1","value":"0x1","nonce":"0x5","input":"0x11","chainId":"0x1",
			"accessList":[{"address":"SLOT","storageKeys":[` + key0 + `]}]}]`, `"0x11"`},
		{"revert", "eth_call", `[{"to":"REVERT"}]`, `{"code":3,"message":"execution reverted: no","data":"` + revertPayload + `"}`},
		{"a script", "debug_traceCall", `[{"to":"SLOT"},"latest",{"tracer":"{result: function() {}, fault: function() {}}"}]`,
			`{"code":-32602,"message":"invalid argument 2: unknown tracer (want the name of a native tracer; JavaScript is off on this network)"}`},
		{"unknown block", "eth_call", `[{"to":"SLOT"},"0x1"]`, `{"code":-32000,"message":"header not found"}`},
		{"out of gas", "eth_call", `[{"to":"LOOP","gas":"0xffff"}]`, `{"code":-32000,"message":"out of gas"}`},
		{"no funds", "eth_call", `[{"from":"RICH","to":"ECHO","value":"0xffffff"}]`,
			`{"code":-32000,"message":"err: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000000041C4 have 1000000 want 16777215 (supplied gas 50000000)"}`},
		{"no call", "eth_call", `[]`, `{"code":-32602,"message":"missing value for required argument 0"}`},
		{"no object", "eth_call", `["0x"]`, `{"code":-32602,"message":"invalid argument 0: non-object value, want an object"}`},
		{"a short address", "eth_call", `[{"to":"0x12"}]`, `{"code":-32602,"message":"invalid argument 0: to: hex string has length 2, want 40 for common.Address"}`},
		{"a number that is none", "eth_call", `[{"to":"ECHO","gas":21000}]`, `{"code":-32602,"message":"invalid argument 0: gas: non-string value, want a hex string"}`},
		{"a leading zero", "eth_call", `[{"to":"ECHO","value":"0x01"}]`, `{"code":-32602,"message":"invalid argument 0: value: hex number with leading zero digits"}`},
		{"an access list without keys", "eth_call", `[{"to":"ECHO","accessList":[{"address":"SLOT"}]}]`,
			`{"code":-32602,"message":"invalid argument 0: accessList: [0]: missing required member \"storageKeys\""}`},
		{"an authorization without s", "eth_call", `[{"to":"ECHO","authorizationList":[{"chainId":"0x1","address":"SLOT","nonce":"0x0","yParity":"0x0","r":"0x1"}]}]`,
			`{"code":-32602,"message":"invalid argument 0: authorizationList: [0]: missing required member \"s\""}`},
		{"state", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{` + key0 + `:` + word1 + `}}}]`, word1},
		{"state without the slot", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{}}}]`, key0},
		{"state difference", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"stateDiff":{` + key0 + `:` + word1 + `}}}]`, word1},
		{"null after state", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{},"state":null}}]`, word42},
		{"null after an override", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{}},"SLOT":null}]`, word42},
		{"null for a slot of state", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{` + key0 + `:null}}}]`,
			`{"code":-32602,"message":"invalid argument 2: SLOT: state: ` + zeroKey + `: non-string value, want a hex string"}`},
		{"null for a slot of a state difference", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"stateDiff":{` + key0 + `:null}}}]`,
			`{"code":-32602,"message":"invalid argument 2: SLOT: stateDiff: ` + zeroKey + `: non-string value, want a hex string"}`},
		{"code", "eth_call", `[{"to":"SLOT","data":"0x0102"},"latest",{"SLOT":{"code":"0x365f5f37365ff3"}}]`, `"0x0102"`},
		{"block", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"code":"0x435f5260205ff3"}},{"number":"0x2a"}]`, word42},
		{"a short slot", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"state":{"0x00":` + word1 + `}}}]`,
			`{"code":-32602,"message":"invalid argument 2: SLOT: state: 0x00: hex string has length 2, want 64 for common.Hash"}`},
		{"a block override that cannot be", "eth_call", `[{"to":"SLOT"},"latest",null,{"withdrawals":[]}]`,
			`{"code":-32602,"message":"invalid argument 3: withdrawals: this method takes no such block override"}`},
		{"the same as null", "eth_call", `[{"to":"SLOT"},"latest",null,{"withdrawals":null}]`, word42},
		{"null after a block override", "eth_call", `[{"to":"SLOT"},"latest",{"SLOT":{"code":"0x435f5260205ff3"}},{"number":"0x2a","number":null}]`, key0},
		{"too many arguments", "eth_call", `[{},"latest",{},{},1]`, `{"code":-32602,"message":"too many arguments, want at most 4"}`},

		{"transfer", "eth_estimateGas", `[{"from":"RICH","to":"0x0000000000000000000000000000000000000b0b","value":"0x1"}]`, `"0x5208"`},
		{"estimate of a revert", "eth_estimateGas", `[{"to":"REVERT"},"latest"]`, `{"code":3,"message":"execution reverted: no","data":"` + revertPayload + `"}`},
		{"estimate of what never ends", "eth_estimateGas", `[{"to":"LOOP","gas":"0x186a0"}]`, `{"code":-32000,"message":"gas required exceeds allowance (100000)"}`},
		{"estimate with an override", "eth_estimateGas", `[{"from":"RICH","to":"ECHO","value":"0xffffff"},"latest",{"RICH":{"balance":"0xfffffff"}}]`, `"0x52bd"`},

		{"access list", "eth_createAccessList", `[{"to":"SLOT"}]`, `{"accessList":[{"address":"SLOT","storageKeys":[` + key0 + `]}],"gasUsed":"0x634a"}`},
		{"access list of nothing", "eth_createAccessList", `[{"to":"RICH"}]`, `{"accessList":[],"gasUsed":"0x5208"}`},
		{"access list of a revert", "eth_createAccessList", `[{"to":"REVERT"}]`, `{"accessList":[],"error":"execution reverted","gasUsed":"0x5259"}`},
	}
	server := callServer(t)
	names := strings.NewReplacer("ECHO", lower(echoAddress), "SLOT", lower(slotAddress), "REVERT", lower(revertAddress), "LOOP", lower(loopAddress), "RICH", lower(richAddress))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, test.method, names.Replace(test.params))
			want := `"result":` + names.Replace(test.want)
			if strings.HasPrefix(test.want, `{"code"`) {
				want = `"error":` + names.Replace(test.want)
			}
			want = `{"jsonrpc":"2.0","id":1,` + want + `}`
			if got := string(server.Answer(t.Context(), []byte(request), nil)); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

func lower(address common.Address) string { return hexutil.Encode(address[:]) }

// FuzzCall asks for calls that nobody would think of. None may do worse than fail.
func FuzzCall(f *testing.F) {
	f.Add(`[{"to":"0x0000000000000000000000000000000000005107","gas":"0xffff"},"latest",{"0x0000000000000000000000000000000000005107":{"code":"0x4a5f5260205ff3"}},{"number":"0x0","time":"0x0","baseFeePerGas":"0x1"}]`)
	f.Add(`[{"from":"0x00000000000000000000000000000000000041c4","gasPrice":"0x8","value":"0x1","data":"0x60","blobVersionedHashes":[]},"0x0"]`)
	f.Add(`[{"accessList":[],"authorizationList":[],"maxFeePerGas":"0x0","chainId":"0x1"},{"blockNumber":"latest"},{},{"prevRandao":null}]`)
	server := callServer(f)
	f.Fuzz(func(t *testing.T, params string) {
		for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
			request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
			answer := server.Answer(t.Context(), []byte(request), nil)
			if strings.Contains(string(answer), `"code":-32603`) {
				t.Errorf("%s: %s", request, answer)
			}
		}
	})
}
