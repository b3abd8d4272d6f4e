package follow

import (
	"cmp"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// TestFollowDevelopmentChain follows geth --dev on the chain that it makes by itself, whose rules are
// not final. Transactions reach geth through the service. Then geth, the service, and one that proves
// what geth says are asked the same questions.
func TestFollowDevelopmentChain(t *testing.T) {
	d := startDevelopment(t)
	_, _, followed := startAshlar(t, d.genesis, d.socket)
	_, proven := forward(t, "state", d.genesis, 1, d.client.URL)
	d.sendAll(followed)
	await(t, "the proven head", func() bool { return tagged(t, proven, "latest") == tagged(t, d.client, "latest") })
	for _, q := range d.questions() {
		d.compare("followed", followed, q)
		d.compare("proven", proven, q)
	}
	for _, q := range d.archiveQuestions() {
		d.compare("followed", followed, q)
	}
}

// development is a geth on a development chain of its own.
type development struct {
	*upstream
	genesis string // file
	sent    []sent
}

// sent is a transaction, and whether it succeeds.
type sent struct {
	hash      common.Hash
	succeeded bool
}

// developer is the key of the account that has all ether of a development chain.
const developer = "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"

func startDevelopment(t *testing.T) *development {
	t.Helper()
	g := node.Geth{Bin: findGeth(t), Data: t.TempDir(), Scheme: node.HashScheme}
	first, client, _, err := g.ServeDev(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Geth listens before it looks for signals. An interrupt in between would kill it.
	await(t, "geth looks for signals", func() bool {
		var stacks string
		return client.Call(t.Context(), &stacks, "debug_stacks") == nil && strings.Contains(stacks, "os/signal.loop")
	})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := g.DumpGenesis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.HexToECDSA(developer)
	if err != nil {
		t.Fatal(err)
	}
	var genesis struct{ Config json.RawMessage }
	if err := json.Unmarshal(text, &genesis); err != nil {
		t.Fatal(err)
	}
	t.Logf("the chain is %s", genesis.Config)
	d := &development{
		upstream: &upstream{t: t, signer: types.LatestSignerForChainID(big.NewInt(1337)), keys: []*ecdsa.PrivateKey{key}},
		genesis:  filepath.Join(t.TempDir(), "genesis.json"),
	}
	if err := os.WriteFile(d.genesis, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if d.process, d.client, d.socket, err = g.ServeDev(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.process.Kill)
	return d
}

// writer is the contract that the transactions call: the first that the developer creates.
func (d *development) writer() common.Address {
	return crypto.CreateAddress(crypto.PubkeyToAddress(d.keys[0].PublicKey), 0)
}

// writerCode is code that uses what forks since Osaka have changed: new instructions, and the prices of
// slots, accounts and creations. It stores the first word that it is called with in slot 1.
func writerCode() []byte {
	p := program.New().Op(vm.SLOTNUM).Push(0).Op(vm.SSTORE)
	p.Push(0).Op(vm.CALLDATALOAD).Push(1).Op(vm.SSTORE)
	for i := range 17 {
		p.Push(i + 1)
	}
	p.Op(vm.DUPN, 0x80).Push(2).Op(vm.SSTORE) // the 17th, which is 1
	p.Push(99).Op(vm.SWAPN, 0x80).Op(vm.EXCHANGE, 0x8e).Push(3).Op(vm.SSTORE)
	dies := program.New().Sstore(0, 1).Selfdestruct(common.HexToAddress("0x4e14")).Bytes()
	p.Mstore(dies, 0).Push(len(dies)).Push(0).Push(1).Op(vm.CREATE, vm.POP)
	p.Call(nil, common.HexToAddress("0xbe4e"), 1, 0, 0, 0, 0).Op(vm.POP)
	return p.Push(7).Push(0).Push(0).Op(vm.LOG1).Push(1).Op(vm.SLOAD).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
}

func word(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }

// sendAll sends transactions of all types but that with blobs, and checks what the writer has stored.
func (d *development) sendAll(service *node.Client) {
	d.t.Helper()
	writer, fresh := d.writer(), common.HexToAddress("0xf4e54")
	feeCap, tip := big.NewInt(100*params.GWei), big.NewInt(params.GWei)
	nonce := func() uint64 { return uint64(len(d.sent)) }
	write := func(value int64, gas uint64) types.TxData {
		return &types.DynamicFeeTx{Nonce: nonce(), ChainID: d.signer.ChainID(), To: &writer, Gas: gas, GasFeeCap: feeCap, GasTipCap: tip, Value: big.NewInt(5), Data: word(value)}
	}
	d.send(service, &types.LegacyTx{Gas: 5_000_000, GasPrice: feeCap, Data: program.New().Sstore(5, 7).ReturnData(writerCode()).Bytes()}, true)
	d.send(service, write(7, 5_000_000), true) // new slots and accounts
	d.send(service, write(8, 5_000_000), true) // that exist
	d.send(service, write(0, 5_000_000), true) // one is cleared
	d.send(service, write(9, 100_000), false)
	d.send(service, &types.AccessListTx{
		Nonce: nonce(), ChainID: d.signer.ChainID(), To: &fresh, Gas: 100_000, GasPrice: feeCap, Value: big.NewInt(1),
		AccessList: types.AccessList{{Address: writer, StorageKeys: []common.Hash{{}}}},
	}, true)
	delegates, err := crypto.ToECDSA(crypto.Keccak256([]byte("delegates")))
	if err != nil {
		d.t.Fatal(err)
	}
	authorization, err := types.SignSetCode(delegates, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(d.signer.ChainID()), Address: writer})
	if err != nil {
		d.t.Fatal(err)
	}
	d.send(service, &types.SetCodeTx{
		Nonce: nonce(), ChainID: uint256.MustFromBig(d.signer.ChainID()), To: crypto.PubkeyToAddress(delegates.PublicKey), Gas: 5_000_000,
		GasFeeCap: uint256.MustFromBig(feeCap), GasTipCap: uint256.MustFromBig(tip), Value: uint256.NewInt(5), Data: word(11),
		AuthList: []types.SetCodeAuthorization{authorization},
	}, true)
	for slot, want := range map[string]int64{"0x0": 0, "0x1": 0, "0x2": 1, "0x3": 1, "0x5": 7} {
		if got := call[common.Hash](d.t, service, "eth_getStorageAt", writer, slot, "latest"); got != common.BytesToHash(word(want)) {
			d.t.Errorf("slot %s of the writer is %s, expected %d", slot, got, want)
		}
	}
}

// send sends a transaction through the service, and returns when the service has its block.
func (d *development) send(service *node.Client, data types.TxData, succeeds bool) {
	d.t.Helper()
	tx := types.MustSignNewTx(d.keys[0], d.signer, data)
	encoded, err := tx.MarshalBinary()
	if err != nil {
		d.t.Fatal(err)
	}
	hash := call[common.Hash](d.t, service, "eth_sendRawTransaction", hexutil.Bytes(encoded))
	var receipt *types.Receipt
	await(d.t, "a receipt", func() bool {
		receipt = call[*types.Receipt](d.t, service, "eth_getTransactionReceipt", hash)
		return receipt != nil
	})
	if hash != tx.Hash() || receipt.Status == types.ReceiptStatusSuccessful != succeeds {
		d.t.Errorf("transaction %d (%s) has the status %d, expected success: %t", tx.Nonce(), hash, receipt.Status, succeeds)
	}
	d.sent = append(d.sent, sent{hash, succeeds})
}

// question is a call to be answered by a service as by geth.
type question struct {
	method string
	params []any
}

// questions are about the blocks, transactions, logs, accounts and calls of the chain.
func (d *development) questions() (all []question) {
	ask := func(method string, params ...any) { all = append(all, question{method, params}) }
	from, writer := crypto.PubkeyToAddress(d.keys[0].PublicKey), d.writer()
	for number := range hexutil.Uint64(d.head() + 1) {
		ask("eth_getBlockByNumber", number, true)
		ask("eth_getBlockReceipts", number)
		ask("eth_getProof", writer, []string{"0x0", "0x1", "0x2", "0x5"}, number)
	}
	for _, tx := range d.sent {
		ask("eth_getTransactionByHash", tx.hash)
		ask("eth_getTransactionReceipt", tx.hash)
		ask("debug_traceTransaction", tx.hash, map[string]any{"tracer": "callTracer", "tracerConfig": map[string]bool{"withLog": true}})
		ask("debug_traceTransaction", tx.hash, map[string]any{"tracer": "prestateTracer", "tracerConfig": map[string]bool{"diffMode": true}})
		if tx.succeeded { // else geth shows the slot of an instruction that has failed
			ask("debug_traceTransaction", tx.hash, map[string]any{})
		}
	}
	ask("eth_getLogs", map[string]any{"fromBlock": "earliest", "toBlock": "latest", "address": writer})
	for _, gas := range []hexutil.Uint64{5_000_000, 200_000} {
		message := map[string]any{"from": from, "to": writer, "gas": gas, "value": "0x5", "data": hexutil.Bytes(word(12))}
		ask("eth_call", message, "latest")
		ask("eth_estimateGas", message, "latest")
		ask("eth_createAccessList", message, "latest")
		ask("debug_traceCall", message, "latest", map[string]any{"tracer": "callTracer"})
		ask("eth_simulateV1", map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{message, message}}}}, "latest")
	}
	return all
}

// archiveQuestions are those that a network without an archive answers otherwise, or not at all.
func (d *development) archiveQuestions() (all []question) {
	for number := range hexutil.Uint64(d.head() + 1) {
		all = append(all, question{"debug_getRawBlock", []any{number}}, question{"debug_getRawReceipts", []any{number}})
	}
	return append(all, question{"eth_config", nil}, question{"eth_feeHistory", []any{"0x4", "latest", []int{50}}})
}

// compare compares the answer of a service to a question with geth's.
func (d *development) compare(name string, service *node.Client, q question) {
	d.t.Helper()
	got, want := answerTo(d.t, service, q), answerTo(d.t, d.client, q)
	if !reflect.DeepEqual(got, want) {
		d.t.Errorf("%s: %s%v differs:\n%v\n%v", name, q.method, q.params, got, want)
	}
}

// answerTo returns a result or an error, without what is known to differ from geth.
func answerTo(t *testing.T, client *node.Client, q question) (answer any) {
	t.Helper()
	var refused *node.Error
	err := client.Call(t.Context(), &answer, q.method, q.params...)
	switch {
	case errors.As(err, &refused):
		return *refused
	case err != nil:
		t.Fatal(err)
	}
	object, _ := answer.(map[string]any)
	delete(object, "totalDifficulty") // blocks of the archive have it
	if list, ok := object["accessList"].([]any); ok && q.method == "eth_createAccessList" {
		sortList(list) // geth's order varies
	}
	return answer
}

// sortList sorts an access list.
func sortList(list []any) {
	slices.SortFunc(list, func(a, b any) int {
		return cmp.Compare(a.(map[string]any)["address"].(string), b.(map[string]any)["address"].(string))
	})
	for _, entry := range list {
		keys := entry.(map[string]any)["storageKeys"].([]any)
		slices.SortFunc(keys, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
	}
}
