package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"testing"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

func TestNonces(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.fund(0, 5, params.Ether)
	b.head(nil)
	b.refuse(b.transfer(0, 4, 2, 1), "nonce too low: next nonce 5, tx nonce 4")
	b.add(b.transfer(0, 7, 2, 1))
	b.waits("(0:7+0)")
	b.add(b.transfer(0, 5, 2, 1))
	b.waits("0:5 (0:7+0)")
	if nonce, err := b.pool.Nonce(t.Context(), b.address(0)); nonce != 6 || err != nil {
		t.Errorf("the next nonce is %d, %v; expected 6", nonce, err)
	}
	b.add(b.transfer(0, 6, 2, 1))
	b.waits("0:5 0:6 0:7")
	b.refuse(b.transfer(0, 6, 2, 1), "already known")
	if pending, queued := b.pool.Stats(); pending != 3 || queued != 0 {
		t.Errorf("%d pending and %d queued, expected 3 and 0", pending, queued)
	}
	b.fund(0, 7, params.Ether) // two were included in a block
	b.head(nil)
	b.waits("0:7")
}

func TestReplacement(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(0, 0, 100, 10))
	for _, c := range []struct{ feeCap, tip int64 }{{100, 20}, {109, 11}, {200, 10}, {50, 5}} {
		b.refuse(b.transfer(0, 0, c.feeCap, c.tip), "replacement transaction underpriced")
	}
	better := b.transfer(0, 0, 110, 11)
	b.add(better)
	if _, _, ok := b.pool.Get(better.Hash()); !ok {
		t.Error("the replacement is missing")
	}
	if found := b.pool.Find(b.address(0), 0); found == nil || found.Hash() != better.Hash() {
		t.Errorf("found %v, expected the replacement", found)
	}
	if other, later := b.pool.Find(b.address(1), 0), b.pool.Find(b.address(0), 1); other != nil || later != nil {
		t.Errorf("found %v of another sender and %v of another nonce, expected none", other, later)
	}
	if pending, _ := b.pool.Stats(); pending != 1 {
		t.Errorf("%d transactions for one nonce", pending)
	}
}

// TestReplacementRoundsDown replaces a transaction by one for a tenth more, rounded down to whole wei. geth accepts
// it, and wallets send it to speed a transaction up or to cancel it.
func TestReplacementRoundsDown(t *testing.T) {
	b := newBench(t, DefaultLimits())
	priced := func(feeCap, tip int64) *types.Transaction {
		return b.sign(0, &types.DynamicFeeTx{
			ChainID: b.config.ChainID, Gas: 21000, To: &common.Address{1}, GasFeeCap: big.NewInt(feeCap), GasTipCap: big.NewInt(tip),
		})
	}
	b.add(priced(1_182_885_821, 5))
	b.refuse(priced(1_301_174_402, 6), "replacement transaction underpriced")
	b.refuse(priced(1_301_174_403, 5), "replacement transaction underpriced") // 5.5, rounded down, is no increase
	b.add(priced(1_301_174_403, 6))                                           // instead of 1,301,174,403.1
}

func TestRefused(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.fund(1, 0, 30_000*gwei)
	b.head(nil)
	other := *b.config
	other.ChainID = big.NewInt(99)
	foreign, err := types.SignNewTx(b.keys[0], types.LatestSigner(&other), &types.DynamicFeeTx{ChainID: other.ChainID, Gas: 21000, To: &common.Address{1}, GasFeeCap: big.NewInt(gwei)})
	if err != nil {
		t.Fatal(err)
	}
	price, to := big.NewInt(2*gwei), &common.Address{1}
	for words, tx := range map[string]*types.Transaction{
		"invalid chain id":              foreign,
		"insufficient funds for gas":    b.transfer(1, 0, 2, 1),
		"intrinsic gas too low":         b.sign(0, &types.LegacyTx{GasPrice: price, Gas: 20000, To: to}),
		"gas limit too high":            b.sign(0, &types.LegacyTx{GasPrice: price, Gas: 30_000_001, To: to}),
		"max priority fee per gas high": b.transfer(0, 0, 1, 2),
		"oversized data":                b.sign(0, &types.LegacyTx{GasPrice: price, Gas: 10_000_000, To: to, Data: make([]byte, 200_000)}),
		"missing sidecar":               b.sign(0, b.blobs(nil)),
		"at least one authorization":    b.sign(0, &types.SetCodeTx{ChainID: uint256.MustFromBig(b.config.ChainID), Gas: 100_000, GasFeeCap: uint256.NewInt(2 * gwei), GasTipCap: uint256.NewInt(1)}),
	} {
		b.refuse(tx, words)
	}
	b.waits("")
}

// A sender's balance must cover all of its executable transactions together.
func TestBalanceCoversAllTransactions(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.fund(0, 0, 3*21000*2*gwei) // enough for two transfers at 2 gwei, but not for three
	b.head(nil)
	b.add(b.transfer(0, 0, 2, 1))
	b.add(b.transfer(0, 1, 2, 1))
	b.refuse(b.transfer(0, 2, 2, 1), "insufficient funds for gas * price + value: balance 126000000000000, queued cost 84000000000002")
	b.fund(0, 0, 21000*gwei)
	b.head(nil)
	b.waits("")
}

// Transactions that wait for an earlier nonce are not charged, as in geth: one that was sent with a wrong nonce
// does not block the account.
func TestBalanceIgnoresQueuedTransactions(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.fund(0, 0, 3*21000*2*gwei) // enough for two transfers at 2 gwei, but not for three
	b.head(nil)
	b.add(b.transfer(0, 3, 5, 1))
	b.add(b.transfer(0, 5, 5, 1))
	b.waits("(0:3+1)")
	b.add(b.transfer(0, 0, 2, 1))
	b.waits("0:0 (0:3+1)")
	b.add(b.transfer(0, 1, 2, 1))
	b.refuse(b.transfer(0, 2, 2, 1), "queued cost 84000000000002, tx cost 42000000000001")
	b.refuse(b.transfer(0, 7, 5, 1), "queued cost 84000000000002, tx cost 105000000000001")
	b.head(nil)
	b.waits("0:0 0:1 (0:3+1)")
}

// Transactions that wait for an earlier nonce have a limit of their own, below that of executable ones.
func TestPerSender(t *testing.T) {
	b := newBench(t, Limits{Transactions: 20, Bytes: 1 << 20, Executable: 10, Waiting: 3, Lifetime: time.Hour})
	for nonce := range uint64(5) {
		b.add(b.transfer(0, nonce, 10, 3))
	}
	for nonce := uint64(6); nonce < 9; nonce++ {
		b.add(b.transfer(0, nonce, 10, 3))
	}
	b.refuse(b.transfer(0, 9, 10, 3), "account limit exceeded: pooled 3 txs")
	b.add(b.transfer(0, 7, 20, 4)) // a replacement
	b.waits("0:0 0:1 0:2 0:3 0:4 (0:6+2)")
	b.add(b.transfer(0, 5, 10, 3)) // makes those executable that wait for it
	b.add(b.transfer(0, 9, 10, 3))
	b.refuse(b.transfer(0, 10, 10, 3), "account limit exceeded: pooled 10 txs")
	b.add(b.transfer(0, 11, 10, 3))
}

func TestBounds(t *testing.T) {
	b := newBench(t, Limits{Transactions: 4, Bytes: 1 << 20, Executable: 3, Waiting: 3, Lifetime: time.Hour})
	for nonce := range uint64(3) {
		b.add(b.transfer(0, nonce, 10, 3))
	}
	b.refuse(b.transfer(0, 3, 10, 3), "account limit exceeded: pooled 3 txs")
	b.add(b.transfer(1, 0, 10, 5))
	b.refuse(b.transfer(2, 0, 10, 3), "transaction underpriced")
	b.add(b.transfer(2, 0, 10, 4)) // evicts the last of the cheapest
	b.waits("0:0 0:1 1:0 2:0")
	b.clock = b.clock.Add(2 * time.Hour)
	b.head(nil)
	b.waits("")
	if b.pool.bytes != 0 || len(b.pool.byHash) != 0 || len(b.pool.senders) != 0 {
		t.Errorf("an empty pool counts %d bytes, %d transactions and %d senders", b.pool.bytes, len(b.pool.byHash), len(b.pool.senders))
	}
}

func TestExecutable(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(0, 0, 20, 1))
	b.add(b.transfer(0, 1, 20, 9)) // well paid, but depends on a cheaper one
	b.add(b.transfer(1, 0, 20, 5))
	b.add(b.transfer(1, 1, 20, 4))
	b.add(b.transfer(2, 0, 3, 3)) // below a base fee of 5
	b.add(b.transfer(3, 1, 20, 19))
	order := func(gasLimit uint64) string {
		got := ""
		for _, tx := range b.pool.Executable(big.NewInt(5*gwei), gasLimit) {
			_, from, _ := b.pool.Get(tx.Hash())
			for i := range b.keys {
				if b.address(i) == from {
					got += fmt.Sprintf("%d:%d ", i, tx.Nonce())
				}
			}
		}
		return got
	}
	if got := order(30_000_000); got != "1:0 1:1 0:0 0:1 " {
		t.Errorf("in the order %s", got)
	}
	if got := order(50_000); got != "1:0 1:1 " {
		t.Errorf("with room for two: %s", got)
	}
}

// Transactions of a dropped block return, unless the new branch includes them.
func TestReturned(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.fund(0, 1, params.Ether)
	b.head(types.Transactions{b.transfer(0, 0, 2, 1), b.transfer(0, 1, 2, 1), b.transfer(0, 2, 2, 1)})
	b.waits("0:1 0:2")
}

// blobs returns a transaction with one blob, and without a sidecar if it is nil.
func (b *bench) blobs(sidecar *types.BlobTxSidecar) *types.BlobTx {
	tx := &types.BlobTx{
		ChainID: uint256.MustFromBig(b.config.ChainID), Gas: 21000, GasFeeCap: uint256.NewInt(20 * gwei), GasTipCap: uint256.NewInt(gwei),
		BlobFeeCap: uint256.NewInt(gwei), BlobHashes: []common.Hash{{1}}, Sidecar: sidecar,
	}
	if sidecar != nil {
		tx.BlobHashes = sidecar.BlobHashes()
	}
	return tx
}

func TestBlobs(t *testing.T) {
	b := newBench(t, DefaultLimits())
	blob := new(kzg4844.Blob)
	blob[40] = 7
	commitment, err := kzg4844.BlobToCommitment(blob)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := kzg4844.ComputeBlobProof(blob, commitment)
	if err != nil {
		t.Fatal(err)
	}
	older := types.NewBlobTxSidecar(types.BlobSidecarVersion0, []kzg4844.Blob{*blob}, []kzg4844.Commitment{commitment}, []kzg4844.Proof{proof})
	wrong := older.Copy()
	wrong.Blobs[0][41] = 1
	b.refuse(b.sign(0, b.blobs(wrong)), "KZG verification error")
	short := older.Copy()
	short.Proofs = nil
	b.refuse(b.sign(0, b.blobs(short)), "Wrong sidecar format")

	// Cheap checks come before the proofs, which are then not verified.
	b.fund(1, 0, 0)
	b.fund(2, 1, params.Ether)
	b.head(nil)
	b.refuse(b.sign(1, b.blobs(wrong)), "insufficient funds")
	b.refuse(b.sign(2, b.blobs(wrong)), "nonce too low")
	many := types.NewBlobTxSidecar(types.BlobSidecarVersion0, slices.Repeat(wrong.Blobs, 7), slices.Repeat(wrong.Commitments, 7), slices.Repeat(wrong.Proofs, 7))
	b.refuse(b.sign(0, b.blobs(many)), "transaction blob limit exceeded: blob count 7, limit 6")
	poor := b.blobs(wrong)
	poor.Gas = 20000
	b.refuse(b.sign(0, poor), "intrinsic gas too low")
	unknown := wrong.Copy()
	unknown.Version = 2
	b.refuse(b.sign(0, b.blobs(unknown)), "unexpected sidecar version")

	tx := b.sign(0, b.blobs(older))
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := b.pool.Add(gone, tx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that proofs are not computed after the caller has gone", err)
	}
	b.add(tx)
	got, _, ok := b.pool.Get(tx.Hash())
	if !ok || got.BlobTxSidecar() != nil {
		t.Error("Get does not return a blob transaction, or returns it with the blob")
	}
	if got, _, ok := b.pool.GetWithBlobs(tx.Hash()); !ok || got.BlobTxSidecar() == nil {
		t.Error("GetWithBlobs does not return a blob transaction with the blob")
	}

	if got := b.pool.Find(b.address(0), tx.Nonce()); got == nil || got.Hash() != tx.Hash() || got.BlobTxSidecar() != nil {
		t.Error("Find does not return a blob transaction, or returns it with the blob")
	}

	// A transaction with valid cell proofs is kept unchanged.
	newer := older.Copy()
	if err := newer.ToV1(); err != nil {
		t.Fatal(err)
	}
	wrong = newer.Copy()
	wrong.Proofs[3] = wrong.Proofs[4]
	next := b.blobs(wrong)
	next.Nonce = 1
	b.refuse(b.sign(0, next), "KZG verification error")
	next = b.blobs(newer)
	next.Nonce = 1
	b.add(b.sign(0, next))
	for hash, w := range b.pool.byHash {
		if err := verifyCells(t.Context(), w.tx.BlobTxSidecar()); err != nil {
			t.Errorf("%x is kept with other proofs than cell proofs: %v", hash, err)
		}
	}
}

// TestReservedAddress adds plain transactions and ones with blobs of the same sender. Clients such as
// Optimism's cancel the transaction in their way after geth's error; after an underpriced replacement they
// raise the fee again and again.
func TestReservedAddress(t *testing.T) {
	const reserved = "address already reserved"
	b := newBench(t, DefaultLimits())
	blobs := func(who int, nonce uint64) *types.Transaction {
		tx := b.blobs(types.NewBlobTxSidecar(types.BlobSidecarVersion1, nil, nil, nil))
		tx.Nonce = nonce
		return b.sign(who, tx)
	}
	admit := func(who int, nonce uint64) { // as if its proofs were verified
		t.Helper()
		if err := b.pool.admit(t.Context(), &entry{tx: blobs(who, nonce), from: b.address(who)}); err != nil {
			t.Error(err)
		}
	}
	admit(0, 0)
	for nonce := range uint64(3) {
		b.refuse(b.transfer(0, nonce, 200, 100), reserved)
		b.add(b.transfer(1, nonce, 200, 100))
		b.refuse(blobs(1, nonce), reserved)
	}
	b.refuse(blobs(1, 3), reserved)

	// What is wrong with the transaction itself comes first.
	b.refuse(b.transfer(0, 0, 1_000_000, 1), "insufficient funds")
	b.fund(1, 1, params.Ether)
	b.head(nil)
	b.refuse(blobs(1, 0), "nonce too low")

	// A node that has accepted a transaction may be at a newer head.
	if err := b.pool.AddAccepted(t.Context(), b.transfer(0, 1, 2, 1)); err != nil {
		t.Error(err)
	}

	// Once all transactions of one kind are included, the other kind is accepted.
	b.fund(0, 2, params.Ether)
	b.fund(1, 3, params.Ether)
	b.head(nil)
	b.add(b.transfer(0, 2, 2, 1))
	admit(1, 3)
	b.waits("0:2 1:3")

	// Blobs behind a gap reserve nothing, also if the block with the nonce before leaves the chain.
	admit(2, 7)
	b.add(b.transfer(2, 0, 2, 1))
	b.fund(1, 2, params.Ether)
	b.head(nil)
	b.add(b.transfer(1, 2, 2, 1))
	// A replacement keeps the kind of what a node has accepted.
	admit(3, 0)
	if err := b.pool.AddAccepted(t.Context(), b.transfer(3, 1, 2, 1)); err != nil {
		t.Error(err)
	}
	b.add(b.transfer(3, 1, 20, 10))
	b.refuse(blobs(3, 1), reserved)
	b.refuse(b.transfer(3, 2, 2, 1), reserved)
}

func TestSubscribe(t *testing.T) {
	b := newBench(t, DefaultLimits())
	subscription, enough := b.pool.Subscribe(slog.Default()), errors.New("enough")
	first, second := b.transfer(0, 0, 2, 1), b.transfer(0, 1, 2, 1)
	b.add(first) // before anything follows
	b.add(second)
	var seen []common.Hash
	err := subscription.Follow(t.Context(), func(tx *types.Transaction) error {
		if seen = append(seen, tx.Hash()); len(seen) < 2 {
			return nil
		}
		return enough
	})
	if want := []common.Hash{first.Hash(), second.Hash()}; !slices.Equal(seen, want) {
		t.Errorf("notified of %x, expected %x", seen, want)
	}
	if err != enough {
		t.Errorf("Follow returned %v", err)
	}
	if left := len(b.pool.subscriptions); left > 0 {
		t.Errorf("%d subscriptions are left after Follow", left)
	}
}

// TestAccountIsGone: a reorganization may drop the block that made an account. Its transactions cannot be paid then.
func TestAccountIsGone(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(0, 0, 2, 1))
	b.add(b.transfer(1, 0, 2, 1))
	b.waits("0:0 1:0")
	delete(b.state, evm.HashAddress(b.address(0)))
	b.head(nil)
	b.waits("1:0")
	b.refuse(b.transfer(0, 1, 2, 1), "insufficient funds")
}
