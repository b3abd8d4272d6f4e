package archive

import (
	"bytes"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/evm"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
	"github.com/ethereum/go-ethereum/triedb/database"
	"github.com/holiman/uint256"
)

// openStore opens the store that a filesystem holds; it is closed with the test.
func openStore(t testing.TB, fs vfs.FS) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "archive", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// setFormat makes a new archive one of an older form.
func setFormat(t *testing.T, store kv.Store, format string) {
	t.Helper()
	batch := store.NewBatch()
	rows.SetFormat(batch, format)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// stateModel is a whole state in plain maps.
type stateModel struct {
	accounts map[common.Hash]*types.StateAccount
	slots    map[common.Hash]map[common.Hash]common.Hash
}

func (m stateModel) clone() stateModel {
	c := stateModel{accounts: make(map[common.Hash]*types.StateAccount), slots: make(map[common.Hash]map[common.Hash]common.Hash)}
	for key, account := range m.accounts {
		c.accounts[key] = account.Copy()
	}
	for key, slots := range m.slots {
		c.slots[key] = maps.Clone(slots)
	}
	return c
}

// grower makes random chains: blocks whose state changes accounts, slots and
// the tries of both, with logs and traces, but without a real execution.
type grower struct {
	t       testing.TB
	random  *rand.Rand
	within  *rand.Rand   // chooses what happens within blocks
	states  []stateModel // after each block
	blocks  []*evm.Delta
	nodes   trieNodesInMemory
	codes   map[common.Hash][]byte
	crowded bool   // many keys have the same mark in transaction_changes
	more    int    // slots that the next block changes beside others
	format  string // of archives; "": the newest one
}

func newGrower(t testing.TB, seed uint64) *grower {
	return &grower{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), within: rand.New(rand.NewPCG(seed, 2)),
		nodes: make(trieNodesInMemory), codes: make(map[common.Hash][]byte),
	}
}

// trieNodesInMemory are the nodes of the latest tries, by owner and path.
type trieNodesInMemory map[string][]byte

func (n trieNodesInMemory) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n trieNodesInMemory) Node(owner common.Hash, path []byte, _ common.Hash) ([]byte, error) {
	return n[string(owner[:])+string(path)], nil
}

func (g *grower) key(kind string, of int) common.Hash { return g.nth(kind, g.random.IntN(of)) }

// nth returns the i-th key of a kind.
func (g *grower) nth(kind string, i int) common.Hash {
	key := crypto.Keccak256Hash([]byte(kind), big.NewInt(int64(i)).Bytes())
	if g.crowded {
		key[0], key[1], key[2] = 0, key[1]%64, key[2]%8
	}
	return key
}

// block makes the next block.
func (g *grower) block() *evm.Delta {
	state := stateModel{}.clone()
	parent := types.EmptyRootHash
	header := &types.Header{Number: big.NewInt(int64(len(g.blocks))), Difficulty: big.NewInt(7), GasLimit: 1 << 40}
	if n := len(g.blocks); n > 0 {
		state = g.states[n-1].clone()
		parent = g.blocks[n-1].Block.Root()
		header.ParentHash = g.blocks[n-1].Block.Hash()
	}
	delta := &evm.Delta{
		Accounts: make(map[common.Hash]*types.StateAccount),
		Slots:    make(map[common.Hash]map[common.Hash]common.Hash),
		Codes:    make(map[common.Hash][]byte),
	}
	g.change(&state, delta)
	g.dropUnchanged(&state, delta)
	header.Root = g.root(parent, &state, delta)
	transactions := g.transactions(delta)
	delta.Traces = g.traces(&state, delta, len(transactions))
	delta.Block = types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: transactions})
	g.blocks, g.states = append(g.blocks, delta), append(g.states, state)
	return delta
}

// change changes some accounts and slots at random: what happens most is that
// only a value changes, so that the shape of the trie stays as it is.
func (g *grower) change(state *stateModel, delta *evm.Delta) {
	for range g.random.IntN(8) {
		key := g.key("account", grownAccounts)
		account := state.accounts[key]
		if account != nil && g.random.IntN(5) == 0 {
			changed := make(map[common.Hash]common.Hash)
			for slot := range state.slots[key] {
				changed[slot] = common.Hash{}
			}
			merge(delta.Slots, key, changed)
			delete(state.accounts, key)
			delete(state.slots, key)
			delta.Accounts[key] = nil
			continue
		}
		if account == nil {
			account = types.NewEmptyStateAccount()
			state.accounts[key], state.slots[key] = account, make(map[common.Hash]common.Hash)
		}
		slotsAlone := len(state.slots[key]) > 0 && g.within.IntN(4) == 0
		if !slotsAlone {
			g.changeAccount(account, delta)
		}
		changed := make(map[common.Hash]common.Hash)
		for range g.random.IntN(5) {
			slot, value := g.key("slot", grownSlots), common.Hash{}
			if g.random.IntN(4) > 0 {
				value = common.BigToHash(new(big.Int).Lsh(big.NewInt(g.random.Int64()), uint(g.random.IntN(190))))
			}
			changed[slot] = value
		}
		for ; g.more > 0; g.more-- {
			changed[g.nth("more", g.more)] = common.Hash{31: byte(1 + len(g.blocks))}
		}
		for slot, value := range changed {
			if value == (common.Hash{}) {
				delete(state.slots[key], slot)
			} else {
				state.slots[key][slot] = value
			}
		}
		merge(delta.Slots, key, changed)
		delta.Accounts[key] = account
	}
}

func (g *grower) changeAccount(account *types.StateAccount, delta *evm.Delta) {
	account.Nonce++
	account.Balance = new(uint256.Int).Lsh(uint256.NewInt(g.random.Uint64()), uint(g.random.IntN(192)))
	if g.random.IntN(4) == 0 {
		code := fmt.Appendf(nil, "code %d", g.random.IntN(10))
		hash := crypto.Keccak256Hash(code)
		account.CodeHash = hash[:]
		delta.Codes[hash], g.codes[hash] = code, code
	}
}

// dropUnchanged removes from a delta what is as before: an execution lists only what a block has changed.
func (g *grower) dropUnchanged(state *stateModel, delta *evm.Delta) {
	before := g.before()
	for key, changed := range delta.Slots {
		maps.DeleteFunc(changed, func(slot, value common.Hash) bool { return value == before.slots[key][slot] })
		if len(changed) == 0 {
			delete(delta.Slots, key)
		}
	}
	for key := range delta.Accounts {
		if len(delta.Slots[key]) == 0 && sameAccount(before.accounts[key], state.accounts[key]) {
			delete(delta.Accounts, key)
		}
	}
}

// before is the state before the block that is made.
func (g *grower) before() stateModel {
	if n := len(g.states); n > 0 {
		return g.states[n-1]
	}
	return stateModel{}
}

func merge(all map[common.Hash]map[common.Hash]common.Hash, key common.Hash, changed map[common.Hash]common.Hash) {
	if len(changed) == 0 {
		return
	}
	if all[key] == nil {
		all[key] = make(map[common.Hash]common.Hash)
	}
	maps.Copy(all[key], changed)
}

// root applies a delta's changes to the tries with go-ethereum's trie and
// returns the state root; the nodes that changed are added to the delta.
func (g *grower) root(parent common.Hash, state *stateModel, delta *evm.Delta) common.Hash {
	before := g.before()
	for key, changed := range delta.Slots {
		root := types.EmptyRootHash
		if account := before.accounts[key]; account != nil {
			root = account.Root
		}
		values := make(map[common.Hash][]byte)
		for slot, value := range changed {
			values[slot] = nil
			if value != (common.Hash{}) {
				values[slot] = mustEncode(g.t, common.TrimLeftZeroes(value[:]))
			}
		}
		root = g.apply(trie.StorageTrieID(parent, key, root), values, delta)
		if account := state.accounts[key]; account != nil {
			account.Root = root
		}
	}
	values := make(map[common.Hash][]byte)
	for key := range delta.Accounts {
		values[key] = nil
		if account := state.accounts[key]; account != nil {
			values[key] = mustEncode(g.t, account)
			delta.Accounts[key] = account.Copy()
		} else {
			delta.Accounts[key] = nil
		}
	}
	return g.apply(trie.StateTrieID(parent), values, delta)
}

func (g *grower) apply(id *trie.ID, values map[common.Hash][]byte, delta *evm.Delta) common.Hash {
	tr, err := trie.New(id, g.nodes)
	if err != nil {
		g.t.Fatal(err)
	}
	for key, value := range values {
		if err := tr.Update(key[:], value); err != nil { // no value deletes
			g.t.Fatal(err)
		}
	}
	root, set := tr.Commit(false)
	if set == nil {
		return root
	}
	for path, node := range set.Nodes {
		delta.Nodes = append(delta.Nodes, changedNode(set, path, node))
		g.nodes[string(set.Owner[:])+path] = node.Blob
	}
	return root
}

func changedNode(set *trienode.NodeSet, path string, node *trienode.Node) evm.Node {
	return evm.Node{Owner: set.Owner, Path: path, Hash: node.Hash, Blob: node.Blob, Prev: set.Origins[path]}
}

// transactions makes transactions with logs, from few addresses and topics.
func (g *grower) transactions(delta *evm.Delta) types.Transactions {
	var transactions types.Transactions
	for range g.random.IntN(6) {
		transactions = append(transactions, types.NewTx(&types.LegacyTx{
			Nonce: uint64(len(g.blocks)), Gas: g.random.Uint64N(1 << 30), GasPrice: big.NewInt(1),
			To: new(common.Address), Value: new(big.Int), Data: g.bytes(80),
			V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1),
		}))
		delta.Senders = append(delta.Senders, common.Address(g.bytes(0, 20)))
		delta.Receipts = append(delta.Receipts, g.receipt())
	}
	return transactions
}

func (g *grower) receipt() *types.Receipt {
	receipt := &types.Receipt{Status: uint64(g.random.IntN(2)), CumulativeGasUsed: g.random.Uint64N(1 << 40)}
	if g.random.IntN(4) == 0 {
		receipt.Status, receipt.PostState = 0, g.bytes(0, 32)
	}
	for range g.random.IntN(5) {
		log := &types.Log{Address: common.BytesToAddress([]byte{byte(g.random.IntN(3))}), Data: g.bytes(100), Topics: []common.Hash{}}
		for range g.random.IntN(5) {
			log.Topics = append(log.Topics, common.BigToHash(big.NewInt(g.random.Int64N(4))))
		}
		receipt.Logs = append(receipt.Logs, log)
	}
	return receipt
}

// bytes returns random bytes: up to most, or exactly the length that is given too.
func (g *grower) bytes(most int, exactly ...int) []byte {
	n := slices.Max(append(exactly, 0))
	if len(exactly) == 0 {
		n = g.random.IntN(most)
	}
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(g.random.Uint32())
	}
	return value
}

func mustEncode(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := rlp.EncodeToBytes(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// testGenesis is the genesis that the first block of a grower is taken for.
func testGenesis() *core.Genesis {
	return &core.Genesis{Config: params.TestChainConfig, Difficulty: big.NewInt(7)}
}

// sameAccount reports whether two accounts, each possibly nil, are equal.
func sameAccount(a, b *types.StateAccount) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Nonce == b.Nonce && a.Balance.Eq(b.Balance) && a.Root == b.Root && bytes.Equal(a.CodeHash, b.CodeHash)
}
