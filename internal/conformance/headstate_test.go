package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// headState is a dump of the whole state, as geth writes it.
type headState struct {
	Root     string                            `json:"root"`
	Accounts map[common.Address]*dumpedAccount `json:"accounts"`
}

type dumpedAccount struct {
	Balance  string                 `json:"balance"` // decimal
	Nonce    uint64                 `json:"nonce"`
	Root     common.Hash            `json:"root"`
	CodeHash common.Hash            `json:"codeHash"`
	Code     hexutil.Bytes          `json:"code"`
	Storage  map[common.Hash]string `json:"storage"` // hex without 0x and without leading zeros
}

// proofAnswer is the result of eth_getProof.
type proofAnswer struct {
	Address      common.Address  `json:"address"`
	AccountProof []hexutil.Bytes `json:"accountProof"`
	Balance      *hexutil.Big    `json:"balance"`
	CodeHash     common.Hash     `json:"codeHash"`
	Nonce        hexutil.Uint64  `json:"nonce"`
	StorageHash  common.Hash     `json:"storageHash"`
	StorageProof []struct {
		Key   common.Hash     `json:"key"`
		Value *hexutil.Big    `json:"value"`
		Proof []hexutil.Bytes `json:"proof"`
	} `json:"storageProof"`
}

const (
	// accountsPerBatch keeps a batch's answer well below any cap on its size.
	accountsPerBatch = 100
	// slotsPerProof is within the cap of 1,024 keys, the absent one included.
	slotsPerProof = 500
)

// TestHeadState compares every account and slot of a chain's last block with a
// dump of its state, and checks each one's proof against the state root. The last
// slot asked for of each account, and the last account, do not exist: their
// proofs must prove that.
func TestHeadState(t *testing.T) {
	s := importChain(t, vectors.Path(t, "chains", "prague-with-state", "genesis.json"),
		vectors.Path(t, "chains", "prague-with-state", "chain.rlp"))
	checkHeadState(t, s.serve(t), vectors.Path(t, "chains", "prague-with-state", "headstate.json"))
}

func checkHeadState(t *testing.T, client *node.Client, dump string) {
	raw, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	var state headState
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	root := latest(t, client).StateRoot
	if got := strings.TrimPrefix(root.Hex(), "0x"); got != state.Root {
		t.Fatalf("state root: got %s, want %s", got, state.Root)
	}
	absent := common.HexToAddress("0xab5e27ab5e27ab5e27ab5e27ab5e27ab5e27ab5e")
	state.Accounts[absent] = &dumpedAccount{Balance: "0"}

	addresses := slices.SortedFunc(maps.Keys(state.Accounts), common.Address.Cmp)
	slots := 0
	for batch := range slices.Chunk(addresses, accountsPerBatch) {
		slots += checkProofs(t, client, root, batch, state.Accounts)
		checkCode(t, client, batch, state.Accounts)
	}
	t.Logf("%d accounts and %d slots", len(addresses), slots)
}

func checkProofs(t *testing.T, client *node.Client, root common.Hash, batch []common.Address, want map[common.Address]*dumpedAccount) (slots int) {
	var (
		calls [][]any
		owner []common.Address
		keys  [][]common.Hash
	)
	ask := func(a common.Address, ks []common.Hash) {
		calls, owner, keys = append(calls, []any{a, ks, "latest"}), append(owner, a), append(keys, ks)
	}
	for _, a := range batch {
		slots += len(want[a].Storage)
		for part := range slices.Chunk(slices.SortedFunc(maps.Keys(want[a].Storage), common.Hash.Cmp), slotsPerProof) {
			ask(a, part)
		}
		ask(a, []common.Hash{crypto.Keccak256Hash(a[:])})
	}
	err := client.Batch(t.Context(), "eth_getProof", calls, func(i int, raw json.RawMessage) error {
		var got proofAnswer
		if err := json.Unmarshal(raw, &got); err != nil {
			return err
		}
		if err := checkProof(root, owner[i], keys[i], want[owner[i]], got); err != nil {
			t.Errorf("%s: %v", owner[i], err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

func checkCode(t *testing.T, client *node.Client, batch []common.Address, want map[common.Address]*dumpedAccount) {
	calls := make([][]any, len(batch))
	for i, a := range batch {
		calls[i] = []any{a, "latest"}
	}
	err := client.Batch(t.Context(), "eth_getCode", calls, func(i int, raw json.RawMessage) error {
		var got hexutil.Bytes
		if err := json.Unmarshal(raw, &got); err != nil {
			return err
		}
		if !bytes.Equal(got, want[batch[i]].Code) {
			t.Errorf("%s: code is %d bytes, want %d", batch[i], len(got), len(want[batch[i]].Code))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkProof(root common.Hash, address common.Address, keys []common.Hash, want *dumpedAccount, got proofAnswer) error {
	balance, ok := new(big.Int).SetString(want.Balance, 10)
	if !ok {
		return fmt.Errorf("the dump's balance %q is not a decimal number", want.Balance)
	}
	if got.Address != address || (*big.Int)(got.Balance).Cmp(balance) != 0 || uint64(got.Nonce) != want.Nonce ||
		got.CodeHash != want.CodeHash || got.StorageHash != want.Root {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	leaf, err := verify(root, address[:], got.AccountProof)
	if err != nil {
		return fmt.Errorf("account proof: %w", err)
	}
	proved := types.StateAccount{Balance: new(uint256.Int)} // an absent account's hashes are zero
	if leaf != nil {
		if err := rlp.DecodeBytes(leaf, &proved); err != nil {
			return fmt.Errorf("account proof: %w", err)
		}
	}
	if proved.Nonce != want.Nonce || proved.Balance.ToBig().Cmp(balance) != 0 || proved.Root != want.Root ||
		common.BytesToHash(proved.CodeHash) != want.CodeHash {
		return fmt.Errorf("the proof proves %+v, want %+v", proved, want)
	}
	if len(got.StorageProof) != len(keys) {
		return fmt.Errorf("%d storage proofs for %d keys", len(got.StorageProof), len(keys))
	}
	for i, p := range got.StorageProof {
		if p.Key != keys[i] {
			return fmt.Errorf("storage proof %d is of slot %s, want %s", i, p.Key, keys[i])
		}
		wantValue := common.HexToHash(want.Storage[keys[i]]).Big()
		if (*big.Int)(p.Value).Cmp(wantValue) != 0 {
			return fmt.Errorf("slot %s is %s, want %x", keys[i], p.Value, wantValue)
		}
		if err := checkSlot(want.Root, keys[i], wantValue, p.Proof); err != nil {
			return fmt.Errorf("proof of slot %s: %w", keys[i], err)
		}
	}
	return nil
}

func checkSlot(root, key common.Hash, want *big.Int, proof []hexutil.Bytes) error {
	if root == types.EmptyRootHash || root == (common.Hash{}) {
		if len(proof) != 0 || want.Sign() != 0 {
			return fmt.Errorf("%d nodes of an empty storage", len(proof))
		}
		return nil
	}
	leaf, err := verify(root, key[:], proof)
	if err != nil {
		return err
	}
	var value []byte
	if leaf != nil {
		if err := rlp.DecodeBytes(leaf, &value); err != nil {
			return err
		}
	}
	if new(big.Int).SetBytes(value).Cmp(want) != 0 {
		return fmt.Errorf("it proves %x, want %x", value, want)
	}
	return nil
}

// verify returns the leaf that a proof holds for a key, nil where it proves
// that there is none. A proof may hold no node that is not on the key's path.
func verify(root common.Hash, key []byte, proof []hexutil.Bytes) ([]byte, error) {
	db := memorydb.New()
	for _, n := range proof {
		if err := db.Put(crypto.Keccak256(n), n); err != nil {
			return nil, err
		}
	}
	if db.Len() != len(proof) {
		return nil, fmt.Errorf("a node occurs twice")
	}
	return trie.VerifyProof(root, crypto.Keccak256(key), db)
}
