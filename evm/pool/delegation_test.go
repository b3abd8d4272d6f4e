package pool

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/legacypool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

const (
	inflight = "in-flight transaction limit reached for delegated accounts"
	gapped   = "gapped-nonce tx from delegated accounts"
	reserved = "authority already reserved"
)

// delegate gives a sender code, or takes it away.
func (b *bench) delegate(who int, to common.Address) {
	account := b.state[evm.HashAddress(b.address(who))]
	account.CodeHash = types.EmptyCodeHash.Bytes()
	if to != (common.Address{}) {
		account.CodeHash = crypto.Keccak256(types.AddressToDelegation(to))
	}
}

// setCode returns a transaction with authorizations of other senders.
func (b *bench) setCode(who int, nonce uint64, feeCap int64, authorities ...int) *types.Transaction {
	b.t.Helper()
	tx := &types.SetCodeTx{
		ChainID: uint256.MustFromBig(b.config.ChainID), Nonce: nonce, Gas: 250_000,
		GasFeeCap: uint256.NewInt(uint64(feeCap * gwei)), GasTipCap: uint256.NewInt(uint64(feeCap * gwei)),
	}
	for _, authority := range authorities {
		signed, err := types.SignSetCode(b.keys[authority], types.SetCodeAuthorization{ChainID: *tx.ChainID, Address: common.Address{0x42}})
		if err != nil {
			b.t.Fatal(err)
		}
		tx.AuthList = append(tx.AuthList, signed)
	}
	return b.sign(who, tx)
}

// A sender with a delegation has one executable transaction at most, which can be replaced.
func TestDelegated(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.delegate(0, common.Address{0xaa})
	b.head(nil)
	b.refuse(b.transfer(0, 2, 2, 1), gapped)
	b.add(b.transfer(0, 0, 2, 1))
	b.refuse(b.transfer(0, 1, 2, 1), inflight)
	b.refuse(b.transfer(0, 2, 2, 1), inflight)
	b.add(b.transfer(0, 0, 4, 2))
	b.waits("0:0")
	b.delegate(0, common.Address{})
	b.head(nil)
	b.add(b.transfer(0, 1, 2, 1))
	b.waits("0:0 0:1")
}

// A node may be ahead by the block in which the sender's first transaction is. What it announces
// meanwhile, it announces once.
func TestDelegatedAtANode(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.delegate(0, common.Address{0xaa})
	b.head(nil)
	b.add(b.transfer(0, 0, 2, 1))
	if err := b.pool.AddAccepted(t.Context(), b.transfer(0, 1, 2, 1)); err != nil {
		t.Error(err)
	}
	b.fund(0, 1, params.Ether)
	b.delegate(0, common.Address{0xaa})
	b.head(nil)
	b.waits("0:1")
}

// The same holds for a sender whose authorization is pending, as long as it is.
func TestPendingAuthorization(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.setCode(0, 0, 2, 1, 3))
	b.add(b.setCode(2, 0, 2, 1))
	b.add(b.transfer(1, 0, 2, 1))
	b.refuse(b.transfer(1, 1, 2, 1), inflight)
	b.refuse(b.transfer(3, 1, 2, 1), gapped)
	b.add(b.transfer(0, 0, 4, 4)) // replaces one of the two authorizations
	b.refuse(b.transfer(1, 1, 2, 1), inflight)
	b.add(b.transfer(3, 1, 2, 1))
	b.add(b.transfer(2, 0, 4, 4))
	b.add(b.transfer(1, 1, 2, 1))
	b.waits("0:0 1:0 1:1 2:0 (3:1+0)")
	if len(b.pool.authorized) != 0 {
		t.Errorf("%d accounts are remembered without a pending authorization", len(b.pool.authorized))
	}
}

// An account that has more than one pending transaction, or one with blobs, cannot be delegated.
func TestReservedAuthority(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(1, 0, 2, 1))
	b.add(b.setCode(0, 0, 2, 1))
	b.add(b.transfer(2, 0, 2, 1))
	b.add(b.transfer(2, 2, 2, 1))
	forwarded := func() error { t.Error("a transaction that is rejected was forwarded"); return nil }
	if err := b.pool.AddForwarded(t.Context(), b.setCode(0, 0, 4, 2), forwarded); !errors.Is(err, legacypool.ErrAuthorityReserved) {
		t.Errorf("got %v, expected %q", err, reserved)
	}
	sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion1, nil, nil, nil)
	if err := b.pool.admit(t.Context(), &entry{tx: b.sign(3, b.blobs(sidecar)), from: b.address(3)}); err != nil { // as if its proofs were verified
		t.Fatal(err)
	}
	b.refuse(b.setCode(0, 0, 4, 3), reserved)
	b.waits("0:0 1:0 2:0 (2:2+0) 3:0")
}

// chainOf is the chain of geth's pool: a state that the test changes.
type chainOf struct {
	config *params.ChainConfig
	head   *types.Header
	state  *state.StateDB
}

func (c *chainOf) Config() *params.ChainConfig                                   { return c.config }
func (c *chainOf) CurrentBlock() *types.Header                                   { return c.head }
func (c *chainOf) GetBlock(common.Hash, uint64) *types.Block                     { return types.NewBlockWithHeader(c.head) }
func (c *chainOf) StateAt(common.Hash, *big.Int, uint64) (*state.StateDB, error) { return c.state, nil }

// besideGeth is a pool with geth's, on the same state.
type besideGeth struct {
	*bench
	chain *chainOf
	geth  *legacypool.LegacyPool
}

func newBesideGeth(t *testing.T) *besideGeth {
	t.Helper()
	b := newBench(t, DefaultLimits())
	empty, err := state.New(types.EmptyRootHash, state.NewDatabaseForTesting())
	if err != nil {
		t.Fatal(err)
	}
	chain := &chainOf{b.config, b.pool.head.Header, empty}
	for i := range b.keys {
		empty.SetBalance(b.address(i), uint256.NewInt(params.Ether), tracing.BalanceChangeUnspecified)
	}
	config := legacypool.DefaultConfig
	config.Journal = ""
	geth := legacypool.New(config, chain)
	if err := geth.Init(1, chain.head, txpool.NewReservationTracker().NewHandle(0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = geth.Close() })
	return &besideGeth{b, chain, geth}
}

// advance moves both pools to a head after which a sender has a nonce and perhaps a delegation.
func (b *besideGeth) advance(who int, nonce uint64, to common.Address) {
	b.t.Helper()
	b.fund(who, nonce, params.Ether)
	b.delegate(who, to)
	b.chain.state.SetNonce(b.address(who), nonce, tracing.NonceChangeUnspecified)
	var code []byte
	if to != (common.Address{}) {
		code = types.AddressToDelegation(to)
	}
	b.chain.state.SetCode(b.address(who), code, tracing.CodeChangeUnspecified)
	b.head(nil)
	b.geth.Reset(nil, b.chain.head)
}

// contents returns the executable and the queued nonces of each sender.
func (b *besideGeth) contents(of func(common.Address) (pending, queued []*types.Transaction)) (text string) {
	nonces := func(list []*types.Transaction) (all [8]int) {
		for _, tx := range list {
			all[tx.Nonce()]++
		}
		return all
	}
	for i := range b.keys {
		pending, queued := of(b.address(i))
		text += fmt.Sprint(nonces(pending), nonces(queued), " ")
	}
	return text
}

// TestDelegationsBesideGeth adds random transactions to this pool and to geth's: both say the same.
func TestDelegationsBesideGeth(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(20) {
		random, b := rand.New(rand.NewPCG(seed, 7)), newBesideGeth(t)
		var next [4]uint64
		for step := range 60 {
			who := random.IntN(4)
			if random.IntN(8) == 0 {
				to := common.Address{byte(random.IntN(2))}
				if next[who] < 4 && random.IntN(2) == 0 {
					next[who]++
				}
				b.advance(who, next[who], to)
			}
			nonce, price := next[who]+uint64(random.IntN(3)), int64(2+random.IntN(40))
			tx := b.transfer(who, nonce, price, price)
			if random.IntN(3) == 0 {
				tx = b.setCode(who, nonce, price, random.IntN(4), random.IntN(4))
			}
			got, want := fmt.Sprint(b.pool.Add(t.Context(), tx)), fmt.Sprint(b.geth.Add([]*types.Transaction{tx}, true)[0])
			if seen[want]++; got != want {
				t.Fatalf("seed %d, step %d: %s, geth's pool says %s", seed, step, got, want)
			}
			ours := func(a common.Address) (pending, queued []*types.Transaction) {
				content := b.pool.ContentFrom(a)
				return content.Pending, content.Queued
			}
			if got, want := b.contents(ours), b.contents(b.geth.ContentFrom); got != want {
				t.Fatalf("seed %d, step %d: the pool has %s, geth's %s", seed, step, got, want)
			}
		}
	}
	for _, words := range []string{inflight, gapped, reserved, "<nil>"} {
		if seen[words] < 20 {
			t.Errorf("%q was returned %d times, expected at least 20", words, seen[words])
		}
	}
}
