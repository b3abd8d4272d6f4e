package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

const (
	absentAccounts = 2000 // random accounts for each block that do not exist,
	absentSlots    = 1000 // and empty slots of accounts with storage
	earlierBlocks  = 20
	stateSeed      = 2

	// callsPerBatch keeps a batch within the limits of calls and of the answer's size.
	callsPerBatch = 500
	// slotsPerProof is within the cap of 1,024 keys.
	slotsPerProof = 500
)

// headState is a dump of the complete state in geth's format.
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

// account is the expected account as of a block. An account that does not exist has zero values,
// including the hashes.
type account struct {
	balance           *big.Int
	nonce             uint64
	code              []byte
	slots             map[common.Hash]common.Hash
	codeHash, storage *common.Hash // nil if known only from the proof
}

// accounts are the accounts to read as of a block.
type accounts map[common.Address]*account

// TestHeadState compares every account and slot of a chain's last block with a dump of its state, and
// verifies the proof of each against the state root. It also verifies proofs of absent accounts and
// slots. Earlier blocks have no dump: there the proofs must agree with the methods that read state, and
// be valid for the blocks' roots.
func TestHeadState(t *testing.T) {
	s := importChain(t, vectors.Path(t, "chains", "prague-with-state", "genesis.json"),
		vectors.Path(t, "chains", "prague-with-state", "chain.rlp"))
	client := s.serve(t)
	random := rand.New(rand.NewPCG(stateSeed, 0))
	head := latest(t, client)
	dumped := readDump(t, vectors.Path(t, "chains", "prague-with-state", "headstate.json"), head.StateRoot)
	dumped.addAbsent(random)
	checkAccounts(t, client, head, dumped)
	for _, number := range random.Perm(int(head.Number))[:earlierBlocks] {
		block := blockAt(t, client, hexutil.EncodeUint64(uint64(number)))
		checkAccounts(t, client, block, readAccounts(t, client, block, dumped))
	}
}

func readDump(t *testing.T, path string, root common.Hash) accounts {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var dump headState
	if err := json.Unmarshal(raw, &dump); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(root.Hex(), "0x"); got != dump.Root {
		t.Fatalf("the head's state root is %s, the dump's %s", got, dump.Root)
	}
	all := make(accounts)
	for address, d := range dump.Accounts {
		balance, ok := new(big.Int).SetString(d.Balance, 10)
		if !ok {
			t.Fatalf("the dump's balance %q is not a decimal number", d.Balance)
		}
		slots := make(map[common.Hash]common.Hash)
		for key, value := range d.Storage {
			slots[key] = common.HexToHash(value)
		}
		all[address] = &account{balance, d.Nonce, d.Code, slots, &d.CodeHash, &d.Root}
	}
	return all
}

// addAbsent adds accounts and slots that do not exist.
func (all accounts) addAbsent(random *rand.Rand) {
	addresses := all.sorted()
	for range absentSlots {
		address := addresses[random.IntN(len(addresses))]
		for len(all[address].slots) == 0 {
			address = addresses[random.IntN(len(addresses))]
		}
		all[address].slots[randomHash(random)] = common.Hash{}
	}
	for range absentAccounts {
		address := common.BytesToAddress(randomHash(random).Bytes())
		all[address] = &account{balance: new(big.Int), codeHash: new(common.Hash), storage: new(common.Hash)}
		if random.IntN(10) == 0 {
			all[address].slots = map[common.Hash]common.Hash{randomHash(random): {}}
		}
	}
}

func (all accounts) sorted() []common.Address {
	return slices.SortedFunc(maps.Keys(all), common.Address.Cmp)
}

func randomHash(random *rand.Rand) (hash common.Hash) {
	for i := range hash {
		hash[i] = byte(random.Uint32())
	}
	return hash
}

// readAccounts reads the same accounts and slots as of a block with the methods that read state.
func readAccounts(t *testing.T, client *node.Client, block header, same accounts) accounts {
	t.Helper()
	all := make(accounts)
	addresses := same.sorted()
	at := block.Number.String()
	read := func(method string, of func(a *account, raw json.RawMessage) error) {
		ask(t, client, method, addresses, func(address common.Address) []any { return []any{address, at} },
			func(address common.Address, raw json.RawMessage) error { return of(all[address], raw) })
	}
	type slot struct {
		address common.Address
		key     common.Hash
	}
	var every []slot
	for _, address := range addresses {
		all[address] = &account{slots: make(map[common.Hash]common.Hash)}
		for key := range same[address].slots {
			every = append(every, slot{address, key})
		}
	}
	read("eth_getBalance", func(a *account, raw json.RawMessage) error {
		a.balance = new(big.Int)
		return json.Unmarshal(raw, (*hexutil.Big)(a.balance))
	})
	read("eth_getTransactionCount", func(a *account, raw json.RawMessage) error {
		return json.Unmarshal(raw, (*hexutil.Uint64)(&a.nonce))
	})
	read("eth_getCode", func(a *account, raw json.RawMessage) error {
		if err := json.Unmarshal(raw, (*hexutil.Bytes)(&a.code)); err != nil || len(a.code) == 0 {
			return err // without code, the account may or may not exist
		}
		hash := crypto.Keccak256Hash(a.code)
		a.codeHash = &hash
		return nil
	})
	ask(t, client, "eth_getStorageAt", every, func(s slot) []any { return []any{s.address, s.key, at} },
		func(s slot, raw json.RawMessage) error {
			var value common.Hash
			err := json.Unmarshal(raw, &value)
			all[s.address].slots[s.key] = value
			return err
		})
	return all
}

// ask calls a method for each element of about, in batches.
func ask[T any](t *testing.T, client *node.Client, method string, about []T, params func(T) []any, answer func(T, json.RawMessage) error) {
	t.Helper()
	for batch := range slices.Chunk(about, callsPerBatch) {
		calls := make([][]any, len(batch))
		for i, one := range batch {
			calls[i] = params(one)
		}
		err := client.Batch(t.Context(), method, calls, func(i int, raw json.RawMessage) error { return answer(batch[i], raw) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkAccounts reads proofs and code of accounts and slots as of a block, and compares them.
func checkAccounts(t *testing.T, client *node.Client, block header, want accounts) {
	t.Helper()
	type question struct {
		address common.Address
		keys    []common.Hash
	}
	var questions []question
	for _, address := range want.sorted() {
		keys := slices.SortedFunc(maps.Keys(want[address].slots), common.Hash.Cmp)
		for len(keys) > slotsPerProof {
			questions = append(questions, question{address, keys[:slotsPerProof]})
			keys = keys[slotsPerProof:]
		}
		questions = append(questions, question{address, keys})
	}
	at := block.Number.String()
	var found proofs
	ask(t, client, "eth_getProof", questions, func(q question) []any { return []any{q.address, append([]common.Hash{}, q.keys...), at} },
		func(q question, raw json.RawMessage) error {
			var got proofAnswer
			if err := json.Unmarshal(raw, &got); err != nil {
				return err
			}
			if err := got.check(block.StateRoot, &found); err != nil {
				t.Errorf("block %d, account %s: %v", block.Number, q.address, err)
			} else if err := got.compare(q.address, q.keys, want[q.address]); err != nil {
				t.Errorf("block %d, account %s: %v", block.Number, q.address, err)
			}
			return nil
		})
	ask(t, client, "eth_getCode", want.sorted(), func(address common.Address) []any { return []any{address, at} },
		func(address common.Address, raw json.RawMessage) error {
			var got hexutil.Bytes
			err := json.Unmarshal(raw, &got)
			if err == nil && !bytes.Equal(got, want[address].code) {
				err = fmt.Errorf("block %d, account %s: code of %d bytes, expected %d", block.Number, address, len(got), len(want[address].code))
			}
			return err
		})
	t.Logf("block %d: %s", block.Number, found)
}
