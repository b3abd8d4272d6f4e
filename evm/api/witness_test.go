package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/stateless"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb"
)

// witness is an answer in any form, with its headers decoded.
type witness struct {
	headers     []*types.Header
	codes, keys []hexutil.Bytes
	nodes       []hexutil.Bytes
}

// witnessCalls are a call for each form, of a block with that hash.
var witnessCalls = map[string]func(block common.Hash) (method string, params []any){
	"geth":      func(block common.Hash) (string, []any) { return "debug_executionWitness", []any{block} },
	"reth":      func(block common.Hash) (string, []any) { return "debug_executionWitnessByBlockHash", []any{block} },
	"legacy":    func(block common.Hash) (string, []any) { return "debug_executionWitness", []any{block, "legacy"} },
	"canonical": func(block common.Hash) (string, []any) { return "debug_executionWitness", []any{block, "canonical"} },
}

// witnesses asks for the witness of a block in every form, and checks how the forms differ.
func witnesses(t *testing.T, s *service, block common.Hash) map[string]*witness {
	t.Helper()
	all := make(map[string]*witness)
	for form, call := range witnessCalls {
		var raw struct {
			Headers            []json.RawMessage
			Codes, State, Keys []hexutil.Bytes
		}
		method, params := call(block)
		s.ask(t, &raw, method, params...)
		w := &witness{codes: raw.Codes, keys: raw.Keys, nodes: raw.State}
		for _, raw := range raw.Headers {
			header := new(types.Header)
			err := json.Unmarshal(raw, header)
			if form != "geth" {
				var encoded hexutil.Bytes
				if err = json.Unmarshal(raw, &encoded); err == nil {
					err = rlp.DecodeBytes(encoded, header)
				}
			}
			if err != nil {
				t.Fatalf("%s: header %s: %v", form, raw, err)
			}
			w.headers = append(w.headers, header)
		}
		if (len(w.keys) == 0) != (form == "geth") {
			t.Errorf("%s has %d keys", form, len(w.keys))
		}
		all[form] = w
	}
	for form, w := range all {
		for i, header := range w.headers {
			if header.Hash() != all["geth"].headers[i].Hash() {
				t.Errorf("%s: header %d is another one", form, i)
			}
		}
		for _, code := range all["canonical"].codes {
			if !slices.ContainsFunc(w.codes, func(c hexutil.Bytes) bool { return string(c) == string(code) }) {
				t.Errorf("%s lacks a code that was read", form)
			}
		}
	}
	return all
}

// Every block can be executed by go-ethereum from its witness alone in each form, and not
// from one that lacks any node.
func TestExecutionWitness(t *testing.T) {
	s := serveMade(t)
	for number := 1; number <= madeBlocks; number++ {
		block := s.blocks[number]
		for form, w := range witnesses(t, s, block.Hash()) {
			if err := w.runByGeth(t, madeGenesis().Config, block); err != nil {
				t.Errorf("block %d, %s: %v", number, form, err)
			}
			if len(w.nodes) < 3 {
				t.Errorf("block %d, %s: %d nodes", number, form, len(w.nodes))
			}
			for i := range w.nodes {
				short := *w
				short.nodes = slices.Delete(slices.Clone(w.nodes), i, i+1)
				if short.runByGeth(t, madeGenesis().Config, block) == nil {
					t.Errorf("block %d, %s: runs without node %d", number, form, i)
				}
			}
		}
	}
}

// runByGeth executes a block with go-ethereum's stateless execution.
func (w *witness) runByGeth(t *testing.T, config *params.ChainConfig, block *types.Block) error {
	header := block.Header()
	header.Root, header.ReceiptHash = common.Hash{}, common.Hash{}
	made, err := stateless.NewWitness(header, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.FromExtWitness(&stateless.ExtWitness{Headers: w.headers, Codes: w.codes, State: w.nodes}); err != nil {
		t.Fatal(err)
	}
	root, receipts, err := core.ExecuteStateless(t.Context(), config, vm.Config{}, types.NewBlockWithHeader(header).WithBody(*block.Body()), made)
	if err == nil && (root != block.Root() || receipts != block.ReceiptHash()) {
		return fmt.Errorf("roots %s and %s, expected %s and %s", root, receipts, block.Root(), block.ReceiptHash())
	}
	return err
}

// TestWitnessKeys executes blocks of all kinds of chains on a state that has no more than
// the witness, and only the accounts and slots that its keys name.
func TestWitnessKeys(t *testing.T) {
	raced.Skip(t)
	created := 0
	for name, build := range indexedChains(t) {
		t.Run(name, func(t *testing.T) {
			genesis, blocks := build()
			s := serve(t, genesis, ingesttest.SourceOf(blocks))
			executor, err := execute.New(genesis.Config)
			if err != nil {
				t.Fatal(err)
			}
			for i, block := range blocks {
				all := witnesses(t, s, block.Hash())
				w := all["reth"]
				created += len(w.codes) - len(all["canonical"].codes)
				parent := execute.Parent{Header: w.headers[len(w.headers)-1], State: newWitnessState(t, w), Ancestors: &witnessAncestors{w, blocks[:i]}}
				if _, err := executor.Process(t.Context(), parent, block); err != nil {
					t.Fatalf("block %d: %v", block.NumberU64(), err)
				}
			}
		})
	}
	if created == 0 {
		t.Error("no block created a code")
	}
}

// witnessState is the state that a witness has: what its keys name. It implements
// [evm.State].
type witnessState struct {
	accounts map[common.Hash]*types.StateAccount // of all keys, nil if there is none
	slots    map[common.Hash]bool                // whose keys are known
	storage  func(address, slot common.Hash) (common.Hash, error)
	codes    map[common.Hash][]byte
	nodes    map[common.Hash][]byte
}

func newWitnessState(t *testing.T, w *witness) *witnessState {
	t.Helper()
	s := &witnessState{
		accounts: make(map[common.Hash]*types.StateAccount), slots: make(map[common.Hash]bool),
		codes: map[common.Hash][]byte{types.EmptyCodeHash: nil}, nodes: make(map[common.Hash][]byte),
	}
	for _, code := range w.codes {
		s.codes[crypto.Keccak256Hash(code)] = code
	}
	database := rawdb.NewMemoryDatabase()
	for _, node := range w.nodes {
		hash := crypto.Keccak256Hash(node)
		s.nodes[hash] = node
		rawdb.WriteLegacyTrieNode(database, hash, node)
	}
	nodes := triedb.NewDatabase(database, triedb.HashDefaults)
	root := w.headers[len(w.headers)-1].Root
	accounts, err := trie.New(trie.StateTrieID(root), nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range w.keys {
		hash := crypto.Keccak256Hash(key)
		if len(key) == common.HashLength {
			s.slots[hash] = true
			continue
		}
		value, err := accounts.Get(hash[:])
		if err != nil {
			t.Fatal(err)
		}
		s.accounts[hash] = nil
		if value != nil {
			s.accounts[hash] = new(types.StateAccount)
			if err := rlp.DecodeBytes(value, s.accounts[hash]); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.storage = func(address, slot common.Hash) (word common.Hash, err error) {
		storage, err := trie.New(trie.StorageTrieID(root, address, s.accounts[address].Root), nodes)
		if err != nil {
			return word, err
		}
		encoded, err := storage.Get(slot[:])
		if len(encoded) == 0 || err != nil {
			return word, err
		}
		_, value, _, err := rlp.Split(encoded)
		return common.BytesToHash(value), err
	}
	return s
}

func (s *witnessState) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	account, ok := s.accounts[address]
	if !ok {
		return nil, fmt.Errorf("%w: no key of account %s", evm.ErrMissing, address)
	}
	if account == nil {
		return nil, nil
	}
	return account.Copy(), nil
}

func (s *witnessState) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	if _, ok := s.accounts[address]; !ok || !s.slots[slot] {
		return common.Hash{}, fmt.Errorf("%w: no key of slot %s of account %s", evm.ErrMissing, slot, address)
	}
	if s.accounts[address] == nil {
		return common.Hash{}, nil
	}
	return s.storage(address, slot)
}

func (s *witnessState) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	code, ok := s.codes[hash]
	if !ok {
		return nil, evm.ErrMissing
	}
	return code, nil
}

func (s *witnessState) Node(_ context.Context, _ common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	node, ok := s.nodes[hash]
	if !ok {
		return nil, fmt.Errorf("%w: node %s at %x", evm.ErrMissing, hash, path)
	}
	return node, nil
}

// witnessAncestors has the headers of a witness, and blocks to check uncles with.
type witnessAncestors struct {
	*witness
	blocks []*types.Block
}

func (a *witnessAncestors) Header(_ context.Context, hash common.Hash, _ uint64) (*types.Header, error) {
	for _, header := range a.headers {
		if header.Hash() == hash {
			return header, nil
		}
	}
	return nil, nil
}

func (*witnessAncestors) First() uint64 { return 0 }

func (a *witnessAncestors) Block(_ context.Context, hash common.Hash, number uint64) (*types.Block, error) {
	for _, block := range a.blocks {
		if block.Hash() == hash {
			return block, nil
		}
	}
	return nil, nil
}
