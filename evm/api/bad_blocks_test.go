package api_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/holiman/uint256"
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

// A node can send transactions with their blobs in a block. The invalid blocks are answered without these.
func TestBadBlockWithBlobs(t *testing.T) {
	s, follower := serveBad(t)
	made := newBranches(t)
	good := made.block(made.genesis, 1)
	sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion0, make([]kzg4844.Blob, 1), make([]kzg4844.Commitment, 1), make([]kzg4844.Proof, 1))
	config := madeGenesis().Config
	blobs := types.MustSignNewTx(testECDSA(t), types.LatestSigner(config), &types.BlobTx{
		ChainID: uint256.MustFromBig(config.ChainID), GasTipCap: new(uint256.Int), GasFeeCap: uint256.NewInt(1e11), Gas: 21_000,
		Value: new(uint256.Int), BlobFeeCap: uint256.NewInt(1), BlobHashes: sidecar.BlobHashes(), Sidecar: sidecar,
	})
	if err := follower.Add(t.Context(), withTransactions(good, blobs)); err == nil {
		t.Fatal("a block with blobs is taken")
	}
	other := types.CopyHeader(good.Header())
	other.GasUsed, other.Difficulty = other.GasUsed+1, new(big.Int)
	if err := follower.Add(t.Context(), good.WithSeal(other)); err == nil {
		t.Fatal("a block with a wrong gas is taken")
	}
	var answered []badBlock
	s.ask(t, &answered, "debug_getBadBlocks")
	if len(answered) != 2 {
		t.Fatalf("%d invalid blocks, want 2", len(answered))
	}
	if got := answered[0].hashes(); !slices.Equal(got, []common.Hash{blobs.Hash()}) {
		t.Errorf("the block with blobs has the transactions %v, want %s", got, blobs.Hash())
	}
}
