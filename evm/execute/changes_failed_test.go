package execute_test

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// failingChanges are changes that cannot be read. They implement [execute.StoredBlock], too.
type failingChanges struct {
	inventedBlock
	reads int
}

var errNoChanges = errors.New("the changes cannot be read")

func (f *failingChanges) Changes(context.Context) (execute.StoredChanges, error) { return f, nil }

func (f *failingChanges) Account(context.Context, common.Hash, int) (*types.StateAccount, bool, error) {
	f.reads++
	return nil, false, errNoChanges
}

func (f *failingChanges) Slot(context.Context, common.Hash, common.Hash, int) (common.Hash, bool, error) {
	f.reads++
	return common.Hash{}, false, errNoChanges
}

func (f *failingChanges) Code(context.Context, common.Hash) ([]byte, bool, error) {
	f.reads++
	return nil, false, errNoChanges
}

// TestFailedChangesAreReadOnce traces a transaction whose state cannot be read: each further read could wait as long as the one
// that failed.
func TestFailedChangesAreReadOnce(t *testing.T) {
	config := *params.MergedTestChainConfig
	config.AmsterdamTime, config.BogotaTime, config.UBTTime = nil, nil, nil
	executor, err := execute.New(&config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	tx := types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{To: &common.Address{1}, Gas: 50_000, GasPrice: big.NewInt(1), Value: new(big.Int)})
	header := &types.Header{
		Number: common.Big1, Time: 12, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: new(big.Int), WithdrawalsHash: &types.EmptyWithdrawalsHash,
		BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64), ParentBeaconRoot: new(common.Hash),
	}
	block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: types.Transactions{tx, tx}})
	stored := new(failingChanges)
	parent := execute.Parent{Header: &types.Header{Number: new(big.Int), GasLimit: header.GasLimit}, State: new(leavingState)}
	err = executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{Stored: stored}, func(r *execute.Replay) error {
		if err := r.Skip(1); err != nil {
			return err
		}
		return r.Trace(t.Context(), execute.Tracer{Hooks: new(tracing.Hooks), Stop: func(error) {}})
	})
	if !errors.Is(err, errNoChanges) {
		t.Errorf("the replay returned %v, expected %v", err, errNoChanges)
	}
	if stored.reads != 1 {
		t.Errorf("changes were read %d times, expected once", stored.reads)
	}
}
