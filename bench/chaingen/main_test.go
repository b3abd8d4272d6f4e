package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"ashlar/evm/source/demo"
)

// The output is a valid chain: from the genesis file's block to the head
// that meta.json names.
func TestFilesHoldTheChain(t *testing.T) {
	const blocks = 12
	out := filepath.Join(t.TempDir(), "chain")
	if err := run(context.Background(), demo.Default(), blocks, out); err != nil {
		t.Fatal(err)
	}
	var genesis core.Genesis
	readJSON(t, filepath.Join(out, "genesis.json"), &genesis)
	var about meta
	readJSON(t, filepath.Join(out, "meta.json"), &about)

	file, err := os.Open(filepath.Join(out, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parent, transactions := genesis.ToBlock(), 0
	stream := rlp.NewStream(file, 0)
	for {
		var block types.Block
		if err := stream.Decode(&block); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("after block %d: %v", parent.NumberU64(), err)
		}
		if block.ParentHash() != parent.Hash() {
			t.Fatalf("block %d has parent %s, expected %s", block.NumberU64(), block.ParentHash(), parent.Hash())
		}
		transactions += len(block.Transactions())
		parent = &block
	}
	if parent.NumberU64() != blocks || parent.Hash() != about.Head || parent.Root() != about.StateRoot {
		t.Errorf("the chain ends with block %d, %s, expected %d, %s", parent.NumberU64(), parent.Hash(), blocks, about.Head)
	}
	if about.Blocks != blocks || about.Transactions != transactions || about.Logs == 0 {
		t.Errorf("meta.json counts %d blocks, %d transactions and %d logs, expected %d, %d and some",
			about.Blocks, about.Transactions, about.Logs, blocks, transactions)
	}
}

func TestStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := run(ctx, demo.Default(), 5, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, expected %v", err, context.Canceled)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
