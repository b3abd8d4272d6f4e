package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
)

// recorded is block 35535698 of the OP-stack chain 1301 (Unichain Sepolia, after Isthmus), as
// its nodes returned it, with what the root of its receipts covers.
type recorded struct {
	Block    json.RawMessage
	Receipts json.RawMessage
}

func readRecorded(t *testing.T) (r recorded) {
	t.Helper()
	text, err := os.ReadFile("testdata/op-35535698.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A recorded OP-stack block agrees with its hash and roots, and is returned as its nodes
// returned it.
func TestRecordedBlock(t *testing.T) {
	r := readRecorded(t)
	b, err := DecodeBlock(r.Block)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := b.DecodeReceipts(r.Receipts)
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.JSON(true, receipts)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(r.Block, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(made, &got); err != nil {
		t.Fatal(err)
	}
	compare(t, "block", want, got)
	for i, tx := range want["transactions"].([]any) {
		sent := tx.(map[string]any)
		for name := range got["transactions"].([]any)[i].(map[string]any) {
			if _, ok := sent[name]; !ok && name != "blockTimestamp" {
				t.Errorf("transaction %d has %s, which its nodes do not send", i, name)
			}
		}
	}
	for i, one := range receipts {
		text, err := b.ReceiptJSON(one)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), fmt.Sprintf(`"transactionHash":"%#x"`, b.Transactions[i].Hash)) {
			t.Errorf("receipt %d: %s", i, text)
		}
	}
	if gas := receipts[2].GasUsed; gas != 0x18f7d-0x10994 || receipts[5].Logs[0].Index != 3 {
		t.Errorf("gas %d, index of the last log %d", gas, receipts[5].Logs[0].Index)
	}
}

// Nodes send isSystemTx only of a deposit that is a transaction of the system, as all were before Regolith.
func TestSystemDeposit(t *testing.T) {
	for _, system := range []bool{false, true} {
		raw := map[string]any{
			"type": "0x7e", "sourceHash": common.Hash{1}, "from": common.Address{2}, "value": "0x0", "gas": "0x1", "input": "0x", "isSystemTx": system,
		}
		text, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := decodeDeposit(text)
		if err != nil {
			t.Fatal(err)
		}
		b := &Block{Header: &types.Header{Number: big.NewInt(1)}, Transactions: []Transaction{tx}}
		made, err := b.TransactionJSON(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(made), `"isSystemTx":true`); got != system || !system && strings.Contains(string(made), "isSystemTx") {
			t.Errorf("isSystemTx %t: %s", system, made)
		}
	}
}

// compare reports what is different in the members that a node has sent.
func compare(t *testing.T, where string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, value := range w {
			compare(t, where+"."+name, value, g[name])
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			t.Errorf("%s has %d elements, want %d", where, len(g), len(w))
			return
		}
		for i := range w {
			compare(t, fmt.Sprint(where, "[", i, "]"), w[i], g[i])
		}
	default:
		if want != got {
			t.Errorf("%s is %v, want %v", where, got, want)
		}
	}
}

// Whatever member that a hash or a root covers is changed, left out or moved, the block or its
// receipts are refused.
func TestEveryChangeIsRefused(t *testing.T) {
	r := readRecorded(t)
	covered := map[string]bool{
		"size": true, "blockHash": true, "blockNumber": true, "transactionIndex": true, "gasPrice": true, "blockTimestamp": true, "hash": true,
	}
	try := func(what string, change func(block map[string]any, receipts []any)) {
		t.Helper()
		var block map[string]any
		var receipts []any
		if json.Unmarshal(r.Block, &block) != nil || json.Unmarshal(r.Receipts, &receipts) != nil {
			t.Fatal("the recording cannot be read")
		}
		change(block, receipts)
		blockText, _ := json.Marshal(block)
		receiptsText, _ := json.Marshal(receipts)
		b, err := DecodeBlock(blockText)
		if err == nil {
			_, err = b.DecodeReceipts(receiptsText)
		}
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	flip := func(text string) string { // another last digit
		last := text[len(text)-1]
		return text[:len(text)-1] + string("0123456789abcdef1"[strings.IndexByte("0123456789abcdef", last)+1])
	}
	var block map[string]any
	_ = json.Unmarshal(r.Block, &block)
	for name, value := range block {
		if text, ok := value.(string); ok && (name == "hash" || !covered[name]) {
			try("block."+name, func(b map[string]any, _ []any) { b[name] = flip(text) })
		}
	}
	for i, tx := range block["transactions"].([]any) {
		for name, value := range tx.(map[string]any) {
			signature := i == 0 && (name == "r" || name == "s" || name == "v" || name == "nonce" || name == "depositReceiptVersion") || i > 0 && name == "from" || name == "v"
			if text, ok := value.(string); ok && !covered[name] && !signature {
				try(fmt.Sprint("transaction ", i, " ", name), func(b map[string]any, _ []any) { b["transactions"].([]any)[i].(map[string]any)[name] = flip(text) })
			}
		}
		try("leave out a transaction", func(b map[string]any, r []any) {
			all := b["transactions"].([]any)
			b["transactions"] = append(append([]any{}, all[:i]...), all[i+1:]...)
		})
	}
	try("swap transactions", func(b map[string]any, _ []any) {
		all := b["transactions"].([]any)
		all[1], all[2] = all[2], all[1]
	})
	for i := range 6 {
		of := func(r []any) map[string]any { return r[i].(map[string]any) }
		try("status", func(_ map[string]any, r []any) { of(r)["status"] = "0x0" })
		try("gas", func(_ map[string]any, r []any) { of(r)["cumulativeGasUsed"] = "0x1" })
		if i >= 2 {
			log := func(r []any) map[string]any { return of(r)["logs"].([]any)[0].(map[string]any) }
			try("no logs", func(_ map[string]any, r []any) { of(r)["logs"] = []any{} })
			try("two logs", func(_ map[string]any, r []any) { of(r)["logs"] = []any{log(r), log(r)} })
			try("address", func(_ map[string]any, r []any) { log(r)["address"] = flip(log(r)["address"].(string)) })
			try("data", func(_ map[string]any, r []any) { log(r)["data"] = "0x" })
			try("topics", func(_ map[string]any, r []any) { log(r)["topics"] = []any{} })
		}
	}
	// The root covers every status but 0 as success, except for a deposit's, where every status but 1 is a failure.
	for i := range 6 {
		of := func(r []any) map[string]any { return r[i].(map[string]any) }
		try("status 2", func(_ map[string]any, r []any) { of(r)["status"] = "0x2" })
		try("root of one byte", func(_ map[string]any, r []any) { of(r)["root"] = "0x01"; delete(of(r), "status") })
	}
	try("nonce of the deposit", func(_ map[string]any, r []any) { r[0].(map[string]any)["depositNonce"] = "0x1" })
	try("version of the deposit", func(_ map[string]any, r []any) { delete(r[0].(map[string]any), "depositReceiptVersion") })
	try("a withdrawal", func(b map[string]any, _ []any) {
		b["withdrawals"] = []any{map[string]string{"index": "0x0", "validatorIndex": "0x0", "address": "0x4200000000000000000000000000000000000011", "amount": "0x1"}}
	})
}

// A failed deposit has no other form.
func TestOutcomeOfADeposit(t *testing.T) {
	r := readRecorded(t)
	b, err := DecodeBlock(r.Block)
	if err != nil {
		t.Fatal(err)
	}
	var sent []map[string]any
	if err := json.Unmarshal(r.Receipts, &sent); err != nil {
		t.Fatal(err)
	}
	failed := func(change func(map[string]any)) error {
		sent[0]["status"] = "0x0"
		change(sent[0])
		text, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.DecodeReceipts(text)
		return err
	}
	var root string // of receipts of which the first is a failure
	if _, err := fmt.Sscanf(failed(func(map[string]any) {}).Error(), "the root of the receipts is %s", &root); err != nil {
		t.Fatal(err)
	}
	b.Header.ReceiptHash = common.HexToHash(strings.TrimSuffix(root, ","))
	if err := failed(func(map[string]any) {}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"status 2":     func(r map[string]any) { r["status"] = "0x2" },
		"a state root": func(r map[string]any) { r["root"] = common.Hash{1}; delete(r, "status") },
	} {
		if failed(change) == nil {
			t.Errorf("%s: accepted", name)
		}
		delete(sent[0], "root")
	}
}

// Numbers of zero that a node leaves out of a header are there: the hash is the same.
func TestHeadersAreCompleted(t *testing.T) {
	want := &types.Header{
		Number: big.NewInt(7), Difficulty: new(big.Int), Extra: []byte{}, BaseFee: new(big.Int), WithdrawalsHash: &types.EmptyWithdrawalsHash,
		BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64), ParentBeaconRoot: new(common.Hash),
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"baseFeePerGas", "blobGasUsed", "excessBlobGas"} {
		delete(members, name)
	}
	if text, err = json.Marshal(members); err != nil {
		t.Fatal(err)
	}
	if got, _, err := DecodeHeader(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// blockOf returns a block of one transaction with a signature, as nodes send it.
func blockOf(t *testing.T, tx *types.Transaction) json.RawMessage {
	t.Helper()
	header := &types.Header{
		Number: big.NewInt(7), Difficulty: new(big.Int), UncleHash: types.EmptyUncleHash,
		TxHash: types.DeriveSha(types.Transactions{tx}, trie.NewStackTrie(nil)),
	}
	return bodyOf(t, header, map[string]any{"transactions": []any{tx}})
}

// bodyOf returns a block with a header and some members, as nodes send it.
func bodyOf(t *testing.T, header *types.Header, body map[string]any) json.RawMessage {
	t.Helper()
	members, err := membersOf(header)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(members, body)
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reth does not keep the state roots that receipts had before Byzantium, and sends a status in their place. That says nothing about
// the node. After base fees came, it is false.
func TestReceiptsWithoutStateRoots(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	tx := types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{To: &common.Address{1}, Gas: 21_000, GasPrice: big.NewInt(1), Value: new(big.Int)})
	rooted := &types.Receipt{PostState: bytes.Repeat([]byte{7}, 32), CumulativeGasUsed: 21_000, Logs: []*types.Log{}}
	b, err := DecodeBlock(blockOf(t, tx))
	if err != nil {
		t.Fatal(err)
	}
	b.Header.ReceiptHash = types.DeriveSha(types.Receipts{rooted}, trie.NewStackTrie(nil))
	b.Header.GasUsed = rooted.CumulativeGasUsed
	receipt := func(outcome string) json.RawMessage {
		return json.RawMessage(`[{"type":"0x0",` + outcome + `,"cumulativeGasUsed":"0x5208","logs":[]}]`)
	}
	if _, err := b.DecodeReceipts(receipt(fmt.Sprintf(`"root":"%#x"`, rooted.PostState))); err != nil {
		t.Errorf("with state roots: %v", err)
	}
	status := receipt(`"status":"0x1"`)
	if _, err := b.DecodeReceipts(status); !errors.Is(err, ErrOutcomes) {
		t.Errorf("with a status: %v, want %v", err, ErrOutcomes)
	}
	if _, err := b.DecodeReceipts(receipt(fmt.Sprintf(`"root":"%#x"`, common.Hash{1}))); err == nil || errors.Is(err, ErrUncheckable) {
		t.Errorf("with another state root: %v", err)
	}
	for what, lie := range map[string]string{
		"other gas":  `[{"type":"0x0","status":"0x1","cumulativeGasUsed":"0x5209","logs":[]}]`,
		"other logs": `[{"type":"0x0","status":"0x1","cumulativeGasUsed":"0x5208","logs":[{"address":"0x0000000000000000000000000000000000000001","topics":[],"data":"0x"}]}]`,
	} {
		if _, err := b.DecodeReceipts(json.RawMessage(lie)); err == nil || errors.Is(err, ErrUncheckable) {
			t.Errorf("with a status and %s: %v", what, err)
		}
	}
	b.Header.BaseFee = big.NewInt(1)
	if _, err := b.DecodeReceipts(status); err == nil || errors.Is(err, ErrUncheckable) {
		t.Errorf("with a status, after London: %v", err)
	}
}

// A block without the withdrawals or uncles that its header names is refused.
func TestNothingIsLeftOut(t *testing.T) {
	withdrawals := types.Withdrawals{{Index: 1, Validator: 2, Address: common.Address{3}, Amount: 4}}
	root := types.DeriveSha(withdrawals, trie.NewStackTrie(nil))
	header := &types.Header{
		Number: big.NewInt(7), Difficulty: new(big.Int), BaseFee: new(big.Int), UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, WithdrawalsHash: &root,
	}
	b, err := DecodeBlock(bodyOf(t, header, map[string]any{"withdrawals": withdrawals}))
	if err != nil || len(b.Withdrawals) != 1 {
		t.Errorf("a withdrawal: %v", err)
	}
	for _, left := range []types.Withdrawals{nil, {}} {
		if _, err := DecodeBlock(bodyOf(t, header, map[string]any{"withdrawals": left})); err == nil || !strings.Contains(err.Error(), "the root of the withdrawals") {
			t.Errorf("the withdrawals %v in place of one: %v", left, err)
		}
	}
	header.WithdrawalsHash, header.UncleHash = nil, common.Hash{1}
	if _, err := DecodeBlock(bodyOf(t, header, map[string]any{"uncles": []common.Hash{}})); !errors.Is(err, ErrUncles) {
		t.Errorf("no uncles in place of some: %v", err)
	}
}

// The signatures of a chain's early transactions had other rules: on Ethereum before Homestead a
// signature may have the greater value of s. On the OP stack before Bedrock, a transaction from layer 1
// has none. A node that sends such a block is honest.
func TestEarlySignatures(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	legacy := types.LegacyTx{To: &common.Address{1}, Gas: 21_000, GasPrice: big.NewInt(1), Value: new(big.Int)}
	signed := legacy
	signed.V, signed.R, signed.S = types.MustSignNewTx(key, types.FrontierSigner{}, &legacy).RawSignatureValues()
	signed.V, signed.S = new(big.Int).Sub(big.NewInt(27+28), signed.V), new(big.Int).Sub(crypto.S256().Params().N, signed.S)
	b, err := DecodeBlock(blockOf(t, types.NewTx(&signed)))
	if err != nil || b.Transactions[0].From != crypto.PubkeyToAddress(key.PublicKey) {
		t.Errorf("a signature of Frontier: %v", err)
	}
	unsigned := legacy
	unsigned.V, unsigned.R, unsigned.S = new(big.Int), new(big.Int), new(big.Int)
	if _, err := DecodeBlock(blockOf(t, types.NewTx(&unsigned))); !errors.Is(err, ErrUncheckable) {
		t.Errorf("a transaction without a signature: %v", err)
	}
	other := json.RawMessage(strings.Replace(string(blockOf(t, types.NewTx(&signed))), `"type":"0x0"`, `"type":"0x7b"`, 1))
	if _, err := DecodeBlock(other); !errors.Is(err, ErrUncheckable) {
		t.Errorf("a transaction of another type: %v", err)
	}
}
