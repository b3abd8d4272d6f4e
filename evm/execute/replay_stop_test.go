package execute_test

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// leavingState has one contract. The client leaves when its code is read.
type leavingState struct {
	evm.State
	contract common.Address
	code     []byte
	leave    context.CancelFunc
}

func (s *leavingState) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	if address != evm.HashAddress(s.contract) {
		return nil, nil
	}
	account := types.NewEmptyStateAccount()
	account.CodeHash = crypto.Keccak256(s.code)
	return account, nil
}

func (s *leavingState) Slot(context.Context, common.Hash, common.Hash) (common.Hash, error) {
	return common.Hash{}, nil
}

func (s *leavingState) Code(context.Context, common.Hash) ([]byte, error) {
	s.leave()
	return s.code, nil
}

// TestReplayEndsWithItsClient replays transactions that take hours: in the interpreter, and
// in a precompiled contract. They end when the client leaves, whether they are traced or
// skipped, and a later replay does not take over what they left.
func TestReplayEndsWithItsClient(t *testing.T) {
	loop := program.New()
	_, start := loop.Jumpdest()
	loop.Jump(start)
	rounds := program.New().Push(0xffffffff).Push(224).Op(vm.SHL).Push(0).Op(vm.MSTORE).Call(nil, 9, 0, 0, 213, 0, 64)
	config := *params.MergedTestChainConfig
	config.PragueTime, config.OsakaTime, config.AmsterdamTime = nil, nil, nil // which limit the gas of a transaction
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	const gas = 1 << 50
	contract := common.Address{1}
	tx := types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{To: &contract, Gas: gas, GasPrice: new(big.Int), Value: new(big.Int)})
	header := &types.Header{
		Number: common.Big1, Time: 12, GasLimit: gas, Difficulty: new(big.Int), BaseFee: new(big.Int), WithdrawalsHash: &types.EmptyWithdrawalsHash,
		BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64), ParentBeaconRoot: new(common.Hash),
	}
	block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: types.Transactions{tx, tx}})
	tracer := execute.Tracer{Hooks: new(tracing.Hooks), Stop: func(error) {}}
	for name, code := range map[string][]byte{"a loop": loop.Bytes(), "BLAKE2F": rounds.Bytes()} {
		for what, run := range map[string]func(context.Context, *execute.Replay) error{
			"traced":  func(ctx context.Context, r *execute.Replay) error { return r.Trace(ctx, tracer) },
			"skipped": func(_ context.Context, r *execute.Replay) error { return r.Skip(1) },
		} {
			executor, err := execute.New(&config)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				ctx, leave := context.WithCancel(t.Context())
				parent := execute.Parent{Header: &types.Header{Number: new(big.Int), GasLimit: gas}, State: &leavingState{contract: contract, code: code, leave: leave}}
				err = executor.Replay(ctx, parent, execute.Decoded(block), execute.ReplayOptions{Stored: new(inventedBlock)}, func(r *execute.Replay) error {
					if err := run(ctx, r); err != nil {
						return err
					}
					return ctx.Err()
				})
				leave()
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: %v, expected %v", name, what, err, context.Canceled)
				}
			}
		}
	}
}
