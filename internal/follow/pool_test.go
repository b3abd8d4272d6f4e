package follow

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// waitingNonce is a nonce that no sender reaches.
const waitingNonce = 1 << 20

// hasLeftOver reports whether geth's pool has transactions that dropped blocks have left over: geth includes them
// some time.
func (u *upstream) hasLeftOver() bool {
	u.t.Helper()
	pool := call[map[string]map[common.Address]map[string]any](u.t, u.client, "txpool_content")
	for i, key := range u.keys {
		included := u.nonce(i)
		for _, sorted := range pool { // pending and queued
			for text := range sorted[crypto.PubkeyToAddress(key.PublicKey)] {
				if nonce, err := strconv.ParseUint(text, 10, 64); err != nil {
					u.t.Fatal(err)
				} else if nonce >= included && nonce < waitingNonce {
					return true
				}
			}
		}
	}
	return false
}

// awaitIdle waits until geth has nothing to include and has made no block for a while, so that it makes none between
// record and windBack. After a block of transactions that came in parts, geth makes another one, without any. It
// gives up after some time: a transaction may wait until another one comes.
func (u *upstream) awaitIdle() {
	u.t.Helper()
	head, since := u.head(), time.Now()
	for end := since.Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		pending := call[struct{ Pending hexutil.Uint64 }](u.t, u.client, "txpool_status").Pending
		if now := u.head(); now != head || pending > 0 {
			head, since = now, time.Now()
		} else if time.Since(since) > 300*time.Millisecond {
			return
		}
	}
	u.t.Log("geth has transactions that it does not include")
}

// letWait adds a transaction with a nonce gap to geth's pool, and returns its hash.
func (u *upstream) letWait() common.Hash {
	u.t.Helper()
	tx := u.sign(senders-1, waitingNonce, 0)
	raw, err := tx.MarshalBinary()
	if err != nil {
		u.t.Fatal(err)
	}
	return call[common.Hash](u.t, u.client, "eth_sendRawTransaction", hexutil.Bytes(raw))
}

// awaitPooled returns when the service shows a transaction from geth's pool.
func awaitPooled(t *testing.T, service *node.Client, hash common.Hash) {
	t.Helper()
	await(t, "what waits in geth's pool", func() bool {
		tx := call[*struct {
			Hash      common.Hash
			BlockHash *common.Hash
		}](t, service, "eth_getTransactionByHash", hash)
		return tx != nil && tx.Hash == hash && tx.BlockHash == nil
	})
}

// sendRefused sends a valid transaction that pays less than geth requires: the sender receives geth's
// error, and the transaction is not in the service's pool either.
func sendRefused(t *testing.T, u *upstream, service *node.Client) {
	t.Helper()
	raw, err := types.MustSignNewTx(u.keys[0], u.signer, &types.DynamicFeeTx{
		ChainID: u.signer.ChainID(), Nonce: u.nonce(0), Gas: 100_000, To: &counter, GasFeeCap: big.NewInt(100 * params.GWei), GasTipCap: new(big.Int),
	}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var hash common.Hash
	var refused *node.Error
	err = service.Call(t.Context(), &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "minimum needed 1") {
		t.Errorf("a transaction that geth refuses: %v", err)
	}
	if status := call[struct{ Pending hexutil.Uint64 }](t, service, "txpool_status"); status.Pending != 0 {
		t.Errorf("%d transactions are pending, expected none", status.Pending)
	}
}
