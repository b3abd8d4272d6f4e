package pool

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// accounts is a state with accounts only.
type accounts map[common.Hash]*types.StateAccount

func (a accounts) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	return a[address], nil
}

func (accounts) Slot(context.Context, common.Hash, common.Hash) (common.Hash, error) {
	return common.Hash{}, nil
}

func (accounts) Code(context.Context, common.Hash) ([]byte, error) { return nil, evm.ErrMissing }

func (accounts) Node(context.Context, common.Hash, []byte, common.Hash) ([]byte, error) {
	return nil, evm.ErrMissing
}

// bench is a pool with some funded senders.
type bench struct {
	t      testing.TB
	config *params.ChainConfig
	pool   *Pool
	state  accounts
	keys   []*ecdsa.PrivateKey
	clock  time.Time
}

const gwei = params.GWei

func newBench(t testing.TB, limits Limits) *bench {
	t.Helper()
	config := *params.MergedTestChainConfig
	config.AmsterdamTime, config.UBTTime = nil, nil
	b := &bench{t: t, config: &config, state: accounts{}, clock: time.Unix(1e9, 0)}
	b.pool = New(&config, limits)
	b.pool.now = func() time.Time { b.clock = b.clock.Add(time.Second); return b.clock }
	for i := range 4 {
		key, err := crypto.ToECDSA(common.Hash{31: byte(i + 1)}.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		b.keys = append(b.keys, key)
		b.fund(i, 0, params.Ether)
	}
	b.head(nil)
	return b
}

func (b *bench) address(who int) common.Address { return crypto.PubkeyToAddress(b.keys[who].PublicKey) }

// fund sets the nonce and the balance of a sender.
func (b *bench) fund(who int, nonce uint64, wei int64) {
	account := types.NewEmptyStateAccount()
	account.Nonce, account.Balance = nonce, uint256.NewInt(uint64(wei))
	b.state[evm.HashAddress(b.address(who))] = account
}

// head resets the pool to a new head.
func (b *bench) head(returned types.Transactions) {
	b.t.Helper()
	header := &types.Header{Number: big.NewInt(7), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: 1e9}
	if err := b.pool.Reset(b.t.Context(), Head{header, b.state}, returned); err != nil {
		b.t.Fatal(err)
	}
}

// transfer returns a transaction with a fee cap and a tip in gwei.
func (b *bench) transfer(who int, nonce uint64, feeCap, tip int64) *types.Transaction {
	b.t.Helper()
	return b.sign(who, &types.DynamicFeeTx{
		ChainID: b.config.ChainID, Nonce: nonce, Gas: 21000, To: &common.Address{1},
		GasFeeCap: big.NewInt(feeCap * gwei), GasTipCap: big.NewInt(tip * gwei), Value: big.NewInt(1),
	})
}

func (b *bench) sign(who int, data types.TxData) *types.Transaction {
	b.t.Helper()
	tx, err := types.SignNewTx(b.keys[who], types.LatestSigner(b.config), data)
	if err != nil {
		b.t.Fatal(err)
	}
	return tx
}

func (b *bench) add(tx *types.Transaction) {
	b.t.Helper()
	if err := b.pool.Add(b.t.Context(), tx); err != nil {
		b.t.Fatal(err)
	}
}

// refuse adds a transaction that must be rejected with an error containing words.
func (b *bench) refuse(tx *types.Transaction, words string) {
	b.t.Helper()
	if err := b.pool.Add(b.t.Context(), tx); err == nil || !strings.Contains(err.Error(), words) {
		b.t.Errorf("got %v, expected %q", err, words)
	}
}

// waits compares the contents of the pool: senders with their executable and queued nonces.
func (b *bench) waits(want string) {
	b.t.Helper()
	got := ""
	for i := range b.keys {
		content := b.pool.ContentFrom(b.address(i))
		for _, tx := range content.Pending {
			got += fmt.Sprintf("%d:%d ", i, tx.Nonce())
		}
		if len(content.Queued) > 0 { // in no order
			first := slices.MinFunc(content.Queued, func(x, y *types.Transaction) int { return cmp.Compare(x.Nonce(), y.Nonce()) })
			got += fmt.Sprintf("(%d:%d+%d) ", i, first.Nonce(), len(content.Queued)-1)
		}
	}
	if got = strings.TrimSpace(got); got != want {
		b.t.Errorf("pending are %q, expected %q", got, want)
	}
}
