package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/evm/source/file"
	"ashlar/history/tip"
	"ashlar/internal/await"
	"ashlar/internal/conformance"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/core"
)

// serveUnsettled serves a chain whose last blocks, kept of them, are not settled.
func serveUnsettled(t *testing.T, g *core.Genesis, source ingest.Source, kept uint64) *service {
	t.Helper()
	store, settled, executor := newChain(t, g)
	if _, err := ingest.New(t.Context(), settled, executor, g); err != nil {
		t.Fatal(err)
	}
	first, _ := settled.Settled()
	unsettled, err := tip.Open(t.Context(), store, archive.Tables(), first)
	if err != nil {
		t.Fatal(err)
	}
	follower := ingest.NewFollower(settled, unsettled, executor, ingest.Depths{Unfinalized: kept, Most: kept})
	var last uint64
	for {
		block, err := source.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && block.NumberU64() > 0 {
			last = block.NumberU64()
			err = errors.Join(follower.Add(t.Context(), block), follower.SetHead(t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- follower.Run(ctx) }()
	await.Until(t, "the older blocks to settle", func() bool {
		select {
		case err := <-done:
			t.Fatal(err)
		default:
		}
		return unsettled.Forkchoice().Head.Settled().Number == last-min(last, kept)
	})
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return serveChain(query.NewChain(settled, unsettled, executor))
}

// TestUnsettledIsAnsweredAlike asks about chains that are settled not at all, in
// part, or to the end: every answer is the same.
func TestUnsettledIsAnsweredAlike(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := conformance.ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	settled := serveVectors(t)
	for _, kept := range []uint64{1, 20, 1000} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			export, err := file.Open(filepath.Join(folder, "chain.rlp"))
			if err != nil {
				t.Fatal(err)
			}
			defer export.Close()
			s := serveUnsettled(t, g, export, kept)
			for _, c := range conversations {
				for _, e := range c.Exchanges {
					want, got := settled.Answer(t.Context(), e.Request, nil), s.Answer(t.Context(), e.Request, nil)
					if !bytes.Equal(want, got) {
						t.Errorf("%s: %s:\nsettled   %.300s\nunsettled %.300s", c.Name, e.Request, want, got)
					}
				}
			}
		})
	}
}

// TestUnsettledBlocksAreAnsweredAlike asks for everything of every block.
func TestUnsettledBlocksAreAnsweredAlike(t *testing.T) {
	settled := serveMade(t)
	s := serveUnsettled(t, madeGenesis(), ingesttest.SourceOf(settled.blocks), uint64(len(settled.blocks)/2))
	ask := func(method string, args ...any) {
		t.Helper()
		request := []byte(requestOf(t, method, args...))
		want, got := settled.Answer(t.Context(), request, nil), s.Answer(t.Context(), request, nil)
		if !bytes.Equal(want, got) {
			t.Errorf("%s:\nsettled   %.300s\nunsettled %.300s", request, want, got)
		}
	}
	filter := func(members map[string]any) { ask("eth_getLogs", members) }
	for _, block := range settled.blocks {
		number := fmt.Sprintf("%#x", block.NumberU64())
		for _, at := range []any{number, map[string]any{"blockHash": block.Hash(), "requireCanonical": true}} {
			ask("eth_getBlockReceipts", at)
			ask("eth_getBalance", block.Coinbase(), at)
			ask("eth_getProof", logger, []string{"0x0", "0x5"}, at)
			ask("eth_getStorageAt", logger, "0x5", at)
			ask("eth_getCode", logger, at)
			ask("eth_call", map[string]any{"to": logger}, at)
		}
		ask("eth_getBlockByNumber", number, true)
		ask("eth_getBlockByHash", block.Hash(), false)
		ask("eth_feeHistory", "0x5", number, []float64{10, 90})
		filter(map[string]any{"fromBlock": "0x0", "toBlock": number})
		filter(map[string]any{"fromBlock": number, "toBlock": "latest", "address": logger})
		filter(map[string]any{"blockHash": block.Hash()})
		for i, tx := range block.Transactions() {
			ask("eth_getTransactionByHash", tx.Hash())
			ask("eth_getTransactionReceipt", tx.Hash())
			ask("eth_getTransactionByBlockNumberAndIndex", number, fmt.Sprintf("%#x", i))
		}
	}
}
