package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/trie"
)

type proofAnswer struct {
	Address               common.Address
	AccountProof          []hexutil.Bytes
	Balance               *hexutil.Big
	CodeHash, StorageHash common.Hash
	Nonce                 hexutil.Uint64
	StorageProof          []struct {
		Key   string
		Value *hexutil.Big
		Proof []hexutil.Bytes
	}
}

// TestProofAnswers: every proof holds against the state root of its block.
func TestProofAnswers(t *testing.T) {
	s := serveMade(t)
	absent := common.Address{0xde, 0xad}
	for number, block := range s.blocks {
		for _, address := range []common.Address{logger, reverter, absent} {
			var got proofAnswer
			s.ask(t, &got, "eth_getProof", address, []string{"0x5", common.Hash{31: 5}.Hex(), "0x0"}, hexutil.Uint64(number))
			verify(t, block.Root(), address.Bytes(), got.AccountProof, address != absent)
			for i, key := range []string{"0x5", common.Hash{31: 5}.Hex(), "0x0"} {
				slot := got.StorageProof[i]
				if slot.Key != key || slot.Proof == nil || (slot.Value.ToInt().Sign() != 0) != (address == logger && i < 2) {
					t.Errorf("block %d, %s: slot %+v", number, address, slot)
				}
				if address == logger {
					verify(t, got.StorageHash, common.HexToHash(key).Bytes(), slot.Proof, i < 2)
				}
			}
			if address == absent && (got.CodeHash != common.Hash{} || got.StorageHash != common.Hash{}) {
				t.Errorf("no account: %+v", got)
			}
		}
	}
}

func verify(t *testing.T, root common.Hash, key []byte, proof []hexutil.Bytes, exists bool) {
	t.Helper()
	db := memorydb.New()
	for _, node := range proof {
		if err := db.Put(crypto.Keccak256(node), node); err != nil {
			t.Fatal(err)
		}
	}
	value, err := trie.VerifyProof(root, crypto.Keccak256(key), db)
	if err != nil || exists != (value != nil) {
		t.Errorf("key %x: %x, %v", key, value, err)
	}
}

// TestProofKeys: a key of 32 bytes comes back as it is, others as a quantity.
func TestProofKeys(t *testing.T) {
	s := serveMade(t)
	whole := "0x" + strings.Repeat("0", 63) + "5"
	for key, want := range map[string]string{"0x5": "0x5", "0x05": "0x5", "5": "0x5", "": "0x0", "0x": "0x0", "0x00": "0x0", whole: whole, whole[2:]: whole, "0x" + whole[3:]: whole} {
		var got proofAnswer
		s.ask(t, &got, "eth_getProof", logger, []string{key}, "latest")
		if got.StorageProof[0].Key != want {
			t.Errorf("key %q comes back as %s, want %s", key, got.StorageProof[0].Key, want)
		}
	}
}

func TestProofErrors(t *testing.T) {
	s := serveMade(t)
	address := `"` + logger.Hex() + `"`
	keys := func(n int) string { return "[" + strings.Repeat(`"0x1",`, n-1) + `"0x1"]` }
	for _, test := range []struct {
		params  string
		code    int
		message string
	}{
		{`[` + address + `]`, -32602, `missing value for required argument 1`},
		{`["0x1",[]]`, -32602, `invalid argument 0: hex string of odd length`},
		{`[` + address + `,"0x1"]`, -32602, `invalid argument 1: non-array value, want an array of storage keys`},
		{`[` + address + `,[7]]`, -32602, `invalid argument 1: non-string value, want a hex string`},
		{`[` + address + `,["0xzz"]]`, -32602, `invalid hex in storage key: "0xzz"`},
		{`[` + address + `,["0xzz"],"0x99"]`, -32602, `invalid hex in storage key: "0xzz"`},
		{`[` + address + `,["0xzz"],{}]`, -32602, `invalid argument 2: must specify either BlockHash or BlockNumber`},
		{`[` + address + `,["0xzz",7]]`, -32602, `invalid argument 1: non-string value, want a hex string`},
		{`[` + address + `,["0x` + strings.Repeat("1", 65) + `"]]`, -32602, `storage key too long (want at most 32 bytes): "0x` + strings.Repeat("1", 65) + `"`},
		{`[` + address + `,` + keys(1025) + `]`, -32602, `too many storage keys requested (max 1024, got 1025)`},
		{`[` + address + `,[],"0x99"]`, -32000, `header not found`},
		{`[` + address + `,[],{"blockHash":"0x` + strings.Repeat("1", 64) + `"}]`, -32000, `header for hash not found`},
	} {
		request := `{"jsonrpc":"2.0","id":1,"method":"eth_getProof","params":` + test.params + `}`
		var got struct{ Error failure }
		if err := json.Unmarshal(s.Answer(t.Context(), []byte(request), nil), &got); err != nil {
			t.Fatal(err)
		}
		if got.Error.Code != test.code || got.Error.Message != test.message {
			t.Errorf("%.80s: %d %s, want %d %s", test.params, got.Error.Code, got.Error.Message, test.code, test.message)
		}
	}
	var got proofAnswer
	s.ask(t, &got, "eth_getProof", logger, json.RawMessage(keys(1024)))
	if len(got.StorageProof) != 1024 {
		t.Errorf("%d proofs of 1024 keys", len(got.StorageProof))
	}
}

// TestStorageValuesErrors: the number of slots is counted after the types of all arguments are
// checked, as in geth.
func TestStorageValuesErrors(t *testing.T) {
	s := serveMade(t)
	keys := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`"`+common.Hash{31: 5}.Hex()+`",`, n), ",") + "]"
	}
	many, few := `"`+logger.Hex()+`":`+keys(1025), `"`+reverter.Hex()+`":`+keys(1)
	for _, test := range []struct {
		params  string
		code    int
		message string
	}{
		{`[{` + many + `}]`, -38026, `too many slots (max 1024)`},
		{`[{` + many + `},"0x99"]`, -38026, `too many slots (max 1024)`},
		{`[{` + many + `},{}]`, -32602, `invalid argument 1: must specify either BlockHash or BlockNumber`},
		{`[{` + many + `,"0x12":[]}]`, -32602, `invalid argument 0: hex string has length 2, want 40 for common.Address`},
		{`[{` + strings.TrimSuffix(many, "]") + `,"0x1"]}]`, -32602, `invalid argument 0: hex string of odd length`},
		{`[{` + few + `,"` + logger.Hex() + `":` + keys(1024) + `}]`, -38026, `too many slots (max 1024)`},
		{`[{},{}]`, -32602, `invalid argument 1: must specify either BlockHash or BlockNumber`},
		{`[{},"0x99"]`, -32602, `empty request`},
		{`[{` + few + `},"0x99"]`, -32000, `header not found`},
	} {
		request := `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageValues","params":` + test.params + `}`
		var got struct{ Error failure }
		if err := json.Unmarshal(s.Answer(t.Context(), []byte(request), nil), &got); err != nil {
			t.Fatal(err)
		}
		if got.Error.Code != test.code || got.Error.Message != test.message {
			t.Errorf("%.60s…%.60s: %d %s, want %d %s", test.params, test.params[max(0, len(test.params)-60):], got.Error.Code, got.Error.Message, test.code, test.message)
		}
	}
	request := `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageValues","params":[{"` + logger.Hex() + `":` + keys(1025) + `,"` + strings.ToLower(logger.Hex()) + `":` + keys(1024) + `}]}`
	var got struct {
		Result map[string][]string
		Error  failure
	}
	if err := json.Unmarshal(s.Answer(t.Context(), []byte(request), nil), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Result) != 1 || len(got.Result[strings.ToLower(logger.Hex())]) != 1024 {
		t.Errorf("an address that is given twice: %d addresses, %v", len(got.Result), got.Error)
	}
}
