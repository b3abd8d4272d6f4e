package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/merkle"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb/database"
)

// provenGenesis returns a genesis with accounts without storage, with one slot and with many.
func provenGenesis() *core.Genesis {
	g := &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int), Alloc: make(types.GenesisAlloc)}
	for i := range 60 {
		account := types.Account{Balance: big.NewInt(int64(i)), Nonce: uint64(i), Storage: make(map[common.Hash]common.Hash)}
		for slot := range i % 6 * i {
			value := new(big.Int).Lsh(big.NewInt(int64(slot+1)), uint(8*(slot%32)))
			account.Storage[common.Hash{31: byte(slot), 30: byte(slot >> 8)}] = common.BigToHash(value)
		}
		if i == 1 {
			account.Storage[common.Hash{}] = common.Hash{31: 1}
		}
		if len(account.Storage) > 0 {
			account.Code = []byte{byte(i)}
		}
		g.Alloc[common.Address{19: byte(i)}] = account
	}
	return g
}

func genesisView(t testing.TB, g *core.Genesis) *View {
	t.Helper()
	view, _ := genesisStore(t, g)
	return view
}

func genesisStore(t testing.TB, g *core.Genesis) (*View, kv.Store) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "proofs", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, g)
	if err != nil {
		t.Fatal(err)
	}
	delta, err := execute.Genesis(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), delta); err != nil {
		t.Fatal(err)
	}
	view, err := NewChain(a, nil, nil).View()
	if err != nil {
		t.Fatal(err)
	}
	return view, store
}

// A proof at an old block, whose trie nodes are checked together, is that of a recent block; and
// whichever of its nodes is damaged in the store, it is named instead.
func TestProofsOfOldBlocks(t *testing.T) {
	g := provenGenesis()
	view, store := genesisStore(t, g)
	address, slots := common.Address{19: 59}, []common.Hash{{31: 1}, {31: 200}}
	want, err := view.Prove(t.Context(), 0, address, slots)
	if err != nil {
		t.Fatal(err)
	}
	old := *view
	old.head.Number += cachedTries
	if old.State(0).(archive.State) != view.history.StateAt(0) {
		t.Fatal("the nodes of the old block are cached")
	}
	if got, err := old.Prove(t.Context(), 0, address, slots); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	key := evm.HashAddress(address)
	damaged := 0
	for row, err := range store.Walk(t.Context(), archive.NamedTables().TrieNodes, 0) {
		if err != nil {
			t.Fatal(err)
		}
		owner, path, err := archive.ParseNodeKey(row.Partition)
		if err != nil || owner != (common.Hash{}) || !bytes.HasPrefix(evm.AppendNibbles(nil, key[:]), path) {
			continue
		}
		put := func(value []byte) {
			batch := store.NewBatch()
			batch.Put(archive.NamedTables().TrieNodes, row.Partition, row.Sort, value)
			if err := store.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		wrong := bytes.Clone(row.Value)
		wrong[len(wrong)-1] ^= 1
		put(wrong)
		named := fmt.Sprintf("trie node at path %x of", path)
		if node, err := archive.ParseNode(path, row.Value); err != nil || node.Rest != nil {
			named = "a leaf with the key"
		}
		if got, err := old.Prove(t.Context(), 0, address, slots); !errors.Is(err, archive.ErrCorrupt) || !strings.Contains(err.Error(), named) {
			t.Errorf("with a damaged node at path %x: got %v, %v, want an error that names it", path, got, err)
		}
		put(row.Value)
		damaged++
	}
	if damaged < 2 {
		t.Errorf("%d nodes were damaged, want the root and others", damaged)
	}
}

// A damaged node of an old proof is named, too, where it leads to a node that does not exist: that one
// alone would be answered as pruned history.
func TestDamageThatLeadsNowhere(t *testing.T) {
	view, store := genesisStore(t, provenGenesis())
	old := *view
	old.head.Number += cachedTries
	table, key := archive.NamedTables().TrieNodes, []byte{0, 1} // of the account trie's node at path 1
	row, err := store.Get(t.Context(), table, key, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	const child = 1 + 2 + 3 // in the row, after its kind and the head of the list: child 3
	if !bytes.Equal(row[child:child+2], []byte{0x80, 0xa0}) {
		t.Fatalf("child 3 is there, or child 4 is not: %x", row)
	}
	copy(row[child:], row[child+1:][:1+common.HashLength]) // now child 4 is child 3
	row[child+1+common.HashLength] = 0x80
	batch := store.NewBatch()
	batch.Put(table, key, 0, row)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	address := common.Address{}
	for crypto.Keccak256(address[:])[0] != 0x13 {
		address[0]++
	}
	if got, err := old.Prove(t.Context(), 0, address, nil); !errors.Is(err, archive.ErrCorrupt) || !strings.Contains(err.Error(), "trie node at path 01 of") {
		t.Errorf("got %v, %v, want an error that names the damaged node", got, err)
	}
}

// TestProofs verifies proofs of all accounts and slots, and of some that do not exist, with
// go-ethereum's verifier, and compares them with those of its prover.
func TestProofs(t *testing.T) {
	g := provenGenesis()
	view := genesisView(t, g)
	header, err := view.Header(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	nodes := trieNodes{t.Context(), view.State(0)}
	for i := range 90 {
		address := common.Address{19: byte(i)}
		account, exists := g.Alloc[address]
		var slots []common.Hash
		for slot := range account.Storage {
			slots = append(slots, slot)
		}
		slots = append(slots, common.Hash{1}, common.Hash{2}, common.Hash{1})
		proof, err := view.Prove(t.Context(), 0, address, slots)
		if err != nil {
			t.Fatal(err)
		}
		if (proof.Account != nil) != exists {
			t.Fatalf("account %d: %+v", i, proof.Account)
		}
		value := checkProof(t, nodes, common.Hash{}, header.Root, evm.HashAddress(address), proof.Nodes)
		if !exists {
			if value != nil || len(proof.Slots) != len(slots) || proof.Slots[0].Nodes != nil || proof.Slots[0].Value != (common.Hash{}) {
				t.Fatalf("account %d, which does not exist: %x, %+v", i, value, proof)
			}
			continue
		}
		if encoded, err := rlp.EncodeToBytes(proof.Account); err != nil || !bytes.Equal(encoded, value) {
			t.Fatalf("account %d: the proof is of %x, the answer is %+v", i, value, proof.Account)
		}
		if proof.Account.Nonce != account.Nonce || proof.Account.Balance.ToBig().Cmp(account.Balance) != 0 {
			t.Fatalf("account %d: %+v, want %+v", i, proof.Account, account)
		}
		for j, slot := range slots {
			got := proof.Slots[j]
			if got.Value != account.Storage[slot] {
				t.Fatalf("slot %x of account %d: %x, want %x", slot, i, got.Value, account.Storage[slot])
			}
			if proof.Account.Root == types.EmptyRootHash {
				if len(got.Nodes) > 0 {
					t.Fatalf("account %d has no storage, the proof has %d nodes", i, len(got.Nodes))
				}
				continue
			}
			value := checkProof(t, nodes, evm.HashAddress(address), proof.Account.Root, evm.HashSlot(slot), got.Nodes)
			if want := account.Storage[slot]; want != (common.Hash{}) {
				encoded, _ := rlp.EncodeToBytes(common.TrimLeftZeroes(want[:]))
				if !bytes.Equal(value, encoded) {
					t.Fatalf("slot %x of account %d: the proof is of %x, want %x", slot, i, value, encoded)
				}
			} else if value != nil {
				t.Fatalf("slot %x of account %d: the proof is of %x, want none", slot, i, value)
			}
		}
	}
}

// trieNodes provides a state's trie nodes to go-ethereum's tries.
type trieNodes struct {
	ctx   context.Context
	state interface {
		Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error)
	}
}

func (n trieNodes) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n trieNodes) Node(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	return n.state.Node(n.ctx, owner, path, hash)
}

// nodeList collects the output of go-ethereum's prover.
type nodeList [][]byte

func (l *nodeList) Put(_, value []byte) error { *l = append(*l, bytes.Clone(value)); return nil }
func (l *nodeList) Delete([]byte) error       { return fmt.Errorf("unexpected deletion from a proof") }

// checkProof verifies a proof and returns the proven value.
func checkProof(t *testing.T, nodes trieNodes, owner, root, key common.Hash, proof [][]byte) []byte {
	t.Helper()
	db := memorydb.New()
	for _, node := range proof {
		if err := db.Put(crypto.Keccak256(node), node); err != nil {
			t.Fatal(err)
		}
	}
	value, err := trie.VerifyProof(root, key[:], db)
	if err != nil {
		t.Fatalf("the proof of %x does not hold: %v", key, err)
	}
	tr, err := trie.New(&trie.ID{StateRoot: root, Owner: owner, Root: root}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	var want nodeList
	if err := tr.Prove(key[:], &want); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(proof, want, bytes.Equal) {
		t.Fatalf("the proof of %x is\n%x, go-ethereum's is\n%x", key, proof, want)
	}
	return value
}

// memoryTrie is a trie in memory. Its keys need not be hashes, so it can have shapes that are
// very rare in tries of hashed keys.
type memoryTrie struct {
	evm.State
	nodes map[string][]byte // by path
}

func (m memoryTrie) Node(_ context.Context, _ common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	blob := m.nodes[string(path)]
	if !bytes.Equal(crypto.Keccak256(blob), hash[:]) {
		return nil, fmt.Errorf("%w: node at %x", evm.ErrMissing, path)
	}
	return blob, nil
}

func (m memoryTrie) NodeReader(common.Hash) (database.NodeReader, error) {
	return trieNodes{context.Background(), m}, nil
}

// TestEmbeddedNodes: keys with such long common prefixes that leaves, and branches of leaves, are
// embedded in their parents.
func TestEmbeddedNodes(t *testing.T) {
	m := memoryTrie{nodes: make(map[string][]byte)}
	tr := trie.NewEmpty(nil)
	var keys []common.Hash
	for i := range 40 {
		key := common.Hash{0: byte(i % 3), 28: byte(i % 5 << 4), 30: byte(i % 7), 31: byte(i)}
		keys = append(keys, key)
		if err := tr.Update(key[:], []byte{byte(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	root, set := tr.Commit(false)
	for path, node := range set.Nodes {
		m.nodes[path] = node.Blob
	}
	walk := trieWalk{state: m, root: root}
	keys = append(keys, common.Hash{9}, common.Hash{0, 31: 200}, common.Hash{28: 1}, common.Hash{30: 1, 31: 0xff})
	for i, key := range keys {
		value, err := walk.to(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		want := checkProof(t, trieNodes{t.Context(), m}, common.Hash{}, root, key, walk.proof())
		if !bytes.Equal(value, want) || (i < 40) != (value != nil) {
			t.Errorf("key %x: %x, want %x", key, value, want)
		}
	}
}

// FuzzDescend: descending through arbitrary bytes ends.
func FuzzDescend(f *testing.F) {
	path := bytes.Repeat([]byte{1, 2}, 32)
	view := genesisView(f, provenGenesis())
	for i := range 6 {
		proof, err := view.Prove(f.Context(), 0, common.Address{19: byte(10 * i)}, []common.Hash{{}})
		if err != nil {
			f.Fatal(err)
		}
		for depth, node := range append(proof.Nodes, proof.Slots[0].Nodes...) {
			f.Add(node, uint8(depth))
		}
	}
	f.Fuzz(func(t *testing.T, node []byte, depth uint8) {
		found, err := merkle.Descend(node, path, int(depth%65))
		if err == nil && (found.Hash != nil && len(found.Hash) != 32 || found.Depth > len(path)) {
			t.Fatalf("%+v", found)
		}
	})
}
