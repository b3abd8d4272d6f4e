package pool

import (
	"errors"
	"math/big"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
)

// A transaction that a fork makes invalid is dropped at the fork.
func TestFork(t *testing.T) {
	b := newBench(t, DefaultLimits())
	osaka := uint64(1e9 + 12)
	b.config.OsakaTime = &osaka
	amsterdam := uint64(1e9 + 24)
	b.config.AmsterdamTime = &amsterdam
	reset := func(time uint64, state evm.State) error {
		header := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: time}
		return b.pool.Reset(t.Context(), Head{header, state}, nil)
	}
	head := func(time uint64) {
		t.Helper()
		if err := reset(time, b.state); err != nil {
			t.Fatal(err)
		}
	}
	call := func(gas uint64, data int) types.TxData {
		return &types.DynamicFeeTx{
			ChainID: b.config.ChainID, Gas: gas, To: &common.Address{1}, Data: make([]byte, data),
			GasFeeCap: big.NewInt(2 * gwei), GasTipCap: big.NewInt(gwei),
		}
	}
	b.add(b.sign(0, call(params.MaxTxGas+1, 0))) // above Osaka's limit
	b.add(b.sign(1, call(21000+10*1000, 1000)))  // below Amsterdam's price of data
	b.add(b.sign(2, call(100_000, 1000)))
	proofs := make([]kzg4844.Proof, kzg4844.CellProofsPerBlob)
	sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion1, make([]kzg4844.Blob, 1), make([]kzg4844.Commitment, 1), proofs)
	if err := b.pool.admit(t.Context(), &entry{tx: b.sign(3, b.blobs(sidecar)), from: b.address(3)}); err != nil { // as if its proofs were verified
		t.Fatal(err)
	}
	b.waits("0:0 1:0 2:0 3:0")
	failing := errors.New("no state")
	if err := reset(osaka, unreadable{b.state, failing}); !errors.Is(err, failing) { // the next attempt applies the fork's rules
		t.Errorf("the pool followed without state: %v", err)
	}
	head(osaka)
	b.waits("1:0 2:0 3:0")
	head(amsterdam)
	b.waits("2:0 3:0")
}
