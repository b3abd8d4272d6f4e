package clients

import (
	"bytes"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"
)

// TestGoEthereum reads the demo with go-ethereum's clients and trusts nothing, as programs do that derive a
// rollup from their L1: each block must have the hash, and its parts the roots, that are recomputed.
func TestGoEthereum(t *testing.T) {
	t.Parallel()
	s := serve(t)
	socket := strings.Replace(strings.Replace(s.url, "http://", "ws://", 1), "/v3/", "/ws/v3/", 1)
	for _, url := range []string{s.url, socket} {
		t.Run(url[:strings.Index(url, ":")], func(t *testing.T) {
			client, err := rpc.Dial(url)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			c := ethclient.NewClient(client)
			kinds := make(map[uint8]int)
			for number := range int64(block) + 1 {
				header, err := c.HeaderByNumber(t.Context(), big.NewInt(number))
				if err != nil {
					t.Fatal(err)
				}
				if err := readBlock(t, c, header.Hash(), kinds); err != nil {
					t.Errorf("block %d: %v", number, err)
				}
			}
			for kind := range uint8(types.SetCodeTxType + 1) {
				if kinds[kind] == 0 {
					t.Errorf("no transaction of type %d was read", kind)
				}
			}
			prove(t, client)
		})
	}
	t.Run("heads", func(t *testing.T) { readHeads(t, socket) })
}

// readBlock reads a block, its receipts in both forms, and its logs. It counts its transactions by their type.
func readBlock(t *testing.T, c *ethclient.Client, hash common.Hash, kinds map[uint8]int) error {
	b, err := c.BlockByHash(t.Context(), hash)
	if err != nil {
		return err
	}
	if root := types.DeriveSha(b.Transactions(), trie.NewStackTrie(nil)); b.Hash() != hash || root != b.TxHash() {
		return fmt.Errorf("the hash is %s and the root of the transactions %s, want %s and %s", b.Hash(), root, hash, b.TxHash())
	}
	receipts, err := c.BlockReceipts(t.Context(), rpc.BlockNumberOrHashWithHash(hash, true))
	if err != nil {
		return err
	}
	var raw []hexutil.Bytes
	if err := c.Client().CallContext(t.Context(), &raw, "debug_getRawReceipts", hash); err != nil {
		return err
	}
	decoded := make(types.Receipts, len(raw))
	for i := range raw {
		decoded[i] = new(types.Receipt)
		if err := decoded[i].UnmarshalBinary(raw[i]); err != nil {
			return err
		}
	}
	for _, list := range []types.Receipts{receipts, decoded} {
		if root := types.DeriveSha(list, trie.NewStackTrie(nil)); root != b.ReceiptHash() {
			return fmt.Errorf("the root of %d receipts is %s, want %s", len(list), root, b.ReceiptHash())
		}
	}
	var want []types.Log
	for i, tx := range b.Transactions() {
		kinds[tx.Type()]++
		if receipts[i].TxHash != tx.Hash() {
			return fmt.Errorf("receipt %d is that of %s, want %s", i, receipts[i].TxHash, tx.Hash())
		}
		for _, log := range receipts[i].Logs {
			want = append(want, *log)
		}
	}
	logs, err := c.FilterLogs(t.Context(), ethereum.FilterQuery{BlockHash: &hash})
	if err != nil {
		return err
	}
	if !slices.EqualFunc(logs, want, func(a, b types.Log) bool { return reflect.DeepEqual(a, b) }) {
		return fmt.Errorf("the logs are %v, want those of the receipts, %v", logs, want)
	}
	return nil
}

// prove reads an account and one of its slots and verifies them by the block's root.
func prove(t *testing.T, client *rpc.Client) {
	t.Helper()
	examples := demoExamples(t)
	header, err := ethclient.NewClient(client).HeaderByNumber(t.Context(), big.NewInt(block))
	if err != nil {
		t.Fatal(err)
	}
	slot := examples.HolderSlot
	got, err := gethclient.New(client).GetProof(t.Context(), examples.Token, []string{slot.Hex()}, header.Number)
	if err != nil {
		t.Fatal(err)
	}
	account, err := trie.VerifyProof(header.Root, crypto.Keccak256(examples.Token[:]), nodesOf(t, got.AccountProof))
	if err != nil || !bytes.Contains(account, got.StorageHash[:]) || !bytes.Contains(account, got.CodeHash[:]) {
		t.Errorf("the proof shows the account %x (%v), want one with %s and %s", account, err, got.StorageHash, got.CodeHash)
	}
	value, err := trie.VerifyProof(got.StorageHash, crypto.Keccak256(slot[:]), nodesOf(t, got.StorageProof[0].Proof))
	if err != nil || !bytes.HasSuffix(value, got.StorageProof[0].Value.Bytes()) || got.StorageProof[0].Value.Sign() == 0 {
		t.Errorf("the proof shows the slot %x (%v), want %#x", value, err, got.StorageProof[0].Value)
	}
}

// nodes are the trie nodes of a proof, by their hashes.
type nodes map[common.Hash][]byte

func (n nodes) Has(key []byte) (bool, error)   { return n[common.BytesToHash(key)] != nil, nil }
func (n nodes) Get(key []byte) ([]byte, error) { return n[common.BytesToHash(key)], nil }

func nodesOf(t *testing.T, proof []string) nodes {
	t.Helper()
	all := make(nodes)
	for _, text := range proof {
		node, err := hexutil.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		all[crypto.Keccak256Hash(node)] = node
	}
	return all
}

// readHeads subscribes to heads, whose hashes the client recomputes, and reads each by its hash at once.
func readHeads(t *testing.T, socket string) {
	c, err := ethclient.DialContext(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	heads := make(chan *types.Header, 10)
	subscription, err := c.SubscribeNewHead(t.Context(), heads)
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Unsubscribe()
	var last common.Hash
	for i := range 3 {
		select {
		case head := <-heads:
			if i > 0 && head.ParentHash != last {
				t.Errorf("the head %s has the parent %s, want %s", head.Hash(), head.ParentHash, last)
			}
			last = head.Hash()
			if err := readBlock(t, c, last, make(map[uint8]int)); err != nil {
				t.Errorf("the head %s: %v", last, err)
			}
		case err := <-subscription.Err():
			t.Fatal(err)
		case <-time.After(2 * time.Minute):
			t.Fatal("timeout waiting for a head")
		}
	}
}
