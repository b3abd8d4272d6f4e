package api_test

import (
	"slices"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// badBlock is an invalid block as it is answered.
type badBlock struct {
	Hash  common.Hash
	Block struct{ Transactions []struct{ Hash common.Hash } }
}

// hashes returns the hashes of its transactions.
func (b *badBlock) hashes() (hashes []common.Hash) {
	for _, tx := range b.Block.Transactions {
		hashes = append(hashes, tx.Hash)
	}
	return hashes
}

// serveBad serves a chain to which a test adds blocks, with the invalid ones among them.
func serveBad(t *testing.T) (*service, *ingest.Follower) {
	t.Helper()
	chain, follower := newFollower(t, ingest.DefaultDepths())
	return serveConfigured(chain, api.Config{BadBlocks: follower.BadBlocks}), follower
}

// withTransactions returns a block with the header of another one, and other transactions.
func withTransactions(block *types.Block, transactions ...*types.Transaction) *types.Block {
	return block.WithBody(types.Body{Transactions: transactions, Uncles: block.Uncles(), Withdrawals: block.Withdrawals()})
}

// A node can send the header of a valid block with another body. Both blocks have the same hash, so what is
// remembered of one must not be answered about the other, whichever was asked for first.
func TestBadBlockWithTheHeaderOfAGoodOne(t *testing.T) {
	for _, goodFirst := range []bool{false, true} {
		s, follower := serveBad(t)
		made := newBranches(t)
		good := made.block(made.genesis, 2)
		bad := withTransactions(good, good.Transactions()[1])
		if err := follower.Add(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "transactions root") {
			t.Fatalf("a block with another body: %v", err)
		}
		if err := follower.Add(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if err := follower.SetHead(t.Context(), good.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
			t.Fatal(err)
		}
		hashesOf := func(block *types.Block) (hashes []common.Hash) {
			for _, tx := range block.Transactions() {
				hashes = append(hashes, tx.Hash())
			}
			return hashes
		}
		checkGood := func() {
			t.Helper()
			var got struct{ Transactions []common.Hash }
			if s.ask(t, &got, "eth_getBlockByHash", good.Hash(), false); !slices.Equal(got.Transactions, hashesOf(good)) {
				t.Errorf("the block has the transactions %v, want %v", got.Transactions, hashesOf(good))
			}
		}
		if goodFirst {
			checkGood()
		}
		var answered []badBlock
		s.ask(t, &answered, "debug_getBadBlocks")
		if len(answered) != 1 || answered[0].Hash != good.Hash() || !slices.Equal(answered[0].hashes(), hashesOf(bad)) {
			t.Errorf("the invalid blocks are %+v, want one of the hash %s with the transactions %v", answered, good.Hash(), hashesOf(bad))
		}
		checkGood()
	}
}
