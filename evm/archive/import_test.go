package archive_test

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/internal/vectors"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb/database"
)

// importVectors imports the chain of ethereum/execution-apis.
func importVectors(t *testing.T) (*archive.Archive, *params.ChainConfig) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := vectors.Path(t, "execution-apis")
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	must(err)
	store, err := pebble.Open(pebble.Options{Path: "chain", FS: vfs.NewMem()})
	must(err)
	t.Cleanup(func() { must(store.Close()) })
	a, err := archive.Create(t.Context(), store, g)
	must(err)
	executor, err := execute.New(g.Config)
	must(err)
	importer, err := ingest.New(t.Context(), a, executor, g)
	must(err)
	blocks, err := file.Open(filepath.Join(folder, "chain.rlp"))
	must(err)
	defer blocks.Close()
	must(importer.Import(t.Context(), blocks))
	return a, g.Config
}

// TestImportedRows: from what is stored of every block of a real chain, its
// transaction root, receipt root and senders come out again, and from its state
// root every trie node can be reached.
func TestImportedRows(t *testing.T) {
	a, config := importVectors(t)
	head, _ := a.Settled()
	if head.Number == 0 {
		t.Fatal("nothing was imported")
	}
	for number := uint64(0); number <= head.Number; number++ {
		header, err := a.Header(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		body, err := a.Body(t.Context(), number, nil)
		if err != nil {
			t.Fatal(err)
		}
		block, err := body.Block(header.Header)
		if err != nil {
			t.Fatal(err)
		}
		if block.Hash() != header.Hash || block.Size() != header.Size {
			t.Errorf("block %d: hash %x and size %d, want %x and %d", number, block.Hash(), block.Size(), header.Hash, header.Size)
		}
		checkRoots(t, block)
		signer := types.MakeSigner(config, header.Number, header.Time)
		for i, transaction := range block.Transactions() {
			if sender, err := types.Sender(signer, transaction); err != nil || sender != body.Sender(i) {
				t.Errorf("block %d: transaction %d is by %s, stored is %s, %v", number, i, sender, body.Sender(i), err)
			}
		}
		stored, err := a.Receipts(t.Context(), number, nil)
		if err != nil {
			t.Fatal(err)
		}
		receipts := rebuilt(t, stored, block.Transactions())
		if root := types.DeriveSha(receipts, trie.NewListHasher()); root != header.ReceiptHash {
			t.Errorf("block %d: receipt root %x, want %x", number, root, header.ReceiptHash)
		}
		checkReachable(t, a.StateAt(number), header.Root)
	}
}

func checkRoots(t *testing.T, block *types.Block) {
	t.Helper()
	if root := types.DeriveSha(block.Transactions(), trie.NewListHasher()); root != block.TxHash() {
		t.Errorf("block %d: transaction root %x, want %x", block.Number(), root, block.TxHash())
	}
	if hash := types.CalcUncleHash(block.Uncles()); hash != block.UncleHash() {
		t.Errorf("block %d: uncle hash %x, want %x", block.Number(), hash, block.UncleHash())
	}
	if want := block.Header().WithdrawalsHash; want != nil {
		if root := types.DeriveSha(block.Withdrawals(), trie.NewListHasher()); root != *want {
			t.Errorf("block %d: withdrawal root %x, want %x", block.Number(), root, *want)
		}
	}
}

// rebuilt makes go-ethereum's receipts from the stored ones.
func rebuilt(t *testing.T, stored *archive.Receipts, transactions types.Transactions) types.Receipts {
	t.Helper()
	receipts := make(types.Receipts, stored.Len())
	for i := range receipts {
		r, err := stored.Receipt(i)
		if err != nil {
			t.Fatal(err)
		}
		receipt := &types.Receipt{Type: transactions[i].Type(), PostState: r.StateRoot, CumulativeGasUsed: r.CumulativeGasUsed}
		if r.Succeeded {
			receipt.Status = types.ReceiptStatusSuccessful
		}
		logs := r.Logs()
		for {
			log, ok, err := logs.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			l := &types.Log{Address: log.Address, Data: log.Data}
			for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
				l.Topics = append(l.Topics, common.Hash(topics[:common.HashLength]))
			}
			receipt.Logs = append(receipt.Logs, l)
		}
		receipt.Bloom = types.CreateBloom(receipt)
		receipts[i] = receipt
	}
	return receipts
}

// stateNodes shows a state's trie nodes to go-ethereum's tries.
type stateNodes struct {
	ctx   context.Context
	state evm.State
}

func (n stateNodes) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n stateNodes) Node(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	return n.state.Node(n.ctx, owner, path, hash)
}

// checkReachable walks the account trie and the storage tries below it, node by
// node. The archive compares the hash of each.
func checkReachable(t *testing.T, state evm.State, root common.Hash) {
	t.Helper()
	nodes := stateNodes{t.Context(), state}
	accounts := openTrie(t, trie.StateTrieID(root), nodes)
	for accounts.Next(true) {
		if !accounts.Leaf() {
			continue
		}
		var account types.StateAccount
		if err := rlp.DecodeBytes(accounts.LeafBlob(), &account); err != nil {
			t.Fatal(err)
		}
		key := common.Hash(accounts.LeafKey())
		slots := openTrie(t, trie.StorageTrieID(root, key, account.Root), nodes)
		for slots.Next(true) {
			if slots.Leaf() {
				checkSlot(t, state, key, common.Hash(slots.LeafKey()), slots.LeafBlob())
			}
		}
		if err := slots.Error(); err != nil {
			t.Fatalf("state root %x, storage of %x: %v", root, key, err)
		}
		if _, err := state.Code(t.Context(), common.Hash(account.CodeHash)); err != nil {
			t.Errorf("state root %x, code of %x: %v", root, key, err)
		}
	}
	if err := accounts.Error(); err != nil {
		t.Fatalf("state root %x: %v", root, err)
	}
}

func openTrie(t *testing.T, id *trie.ID, nodes stateNodes) trie.NodeIterator {
	t.Helper()
	tr, err := trie.New(id, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return tr.MustNodeIterator(nil)
}

func checkSlot(t *testing.T, state evm.State, address, slot common.Hash, leaf []byte) {
	t.Helper()
	value, err := state.Slot(t.Context(), address, slot)
	_, content, _, splitErr := rlp.Split(leaf)
	if err != nil || splitErr != nil || new(big.Int).SetBytes(content).Cmp(value.Big()) != 0 {
		t.Errorf("slot %x of %x is %x, %v, its leaf says %x", slot, address, value, err, content)
	}
}

// TestFormatIsDrawn: docs/format.md has every table, with its number and kind.
func TestFormatIsDrawn(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{1: "versions", 2: "list"}
	for _, table := range archive.Tables() {
		line := fmt.Sprintf("| %#02x | `%s` | %s |", table.ID, table.Name, kinds[table.Kind])
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/format.md has no line that begins with %s", line)
		}
	}
}
