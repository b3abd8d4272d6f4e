package execute_test

import (
	"context"
	"errors"
	"math/big"
	"sync/atomic"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

type asideKey struct{}

// distantState is a state whose reads wait, if it is cold. It implements [execute.Ahead], too.
type distantState struct {
	evm.State
	t     *testing.T
	cold  bool
	aside func() error  // called by reads aside; may be nil
	begun chan struct{} // closed at the first read aside, for which a read of the replay waits; nil: there is to be none
	read  atomic.Int64  // calls of Read
	runs  atomic.Int64  // reads of slots aside
	waits *atomic.Int64
}

func (s *distantState) CountWaits(ctx context.Context, waits *atomic.Int64) context.Context {
	s.waits = waits
	return ctx
}

func (s *distantState) Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, true)
}
func (s *distantState) Read(context.Context, []common.Hash) { s.read.Add(1) }

func (s *distantState) ReadPaths(context.Context, map[common.Hash][]common.Hash) {}

func (s *distantState) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	if ctx.Value(asideKey{}) != nil {
		if s.runs.Add(1) == 1 && s.begun != nil {
			close(s.begun)
		}
		if s.aside != nil {
			if err := s.aside(); err != nil {
				return common.Hash{}, err
			}
		}
	} else if s.cold && s.waits.Add(1) > 4 && s.begun != nil {
		await.Receive(s.t, "a read aside", s.begun)
	}
	return s.State.Slot(ctx, address, slot)
}

// storedState has one contract, and accounts with ether.
type storedState struct {
	evm.State
	contract common.Address
	code     []byte
}

func (s *storedState) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	account := types.NewEmptyStateAccount()
	if account.Balance.SetUint64(1e18); address == evm.HashAddress(s.contract) {
		account.CodeHash = crypto.Keccak256(s.code)
	}
	return account, nil
}

func (s *storedState) Slot(_ context.Context, _, slot common.Hash) (common.Hash, error) {
	return slot, nil
}
func (s *storedState) Code(context.Context, common.Hash) ([]byte, error) { return s.code, nil }

// blockOfReads makes a block whose transactions each read the slots 0 to 4 of one contract, and one of their own.
func blockOfReads(t *testing.T, transactions int) (*storedState, *params.ChainConfig, *types.Block) {
	t.Helper()
	p := program.New()
	for slot := range 5 {
		p.Push(slot).Op(vm.SLOAD).Op(vm.POP)
	}
	p.Push(0).Op(vm.CALLDATALOAD).Op(vm.SLOAD).Push(0).Op(vm.SSTORE)
	stored := &storedState{contract: common.Address{1}, code: p.Op(vm.STOP).Bytes()}
	config := *params.MergedTestChainConfig
	config.AmsterdamTime, config.BogotaTime, config.UBTTime = nil, nil, nil
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	txs := make(types.Transactions, transactions)
	for i := range txs {
		txs[i] = types.MustSignNewTx(key, types.LatestSigner(&config), &types.LegacyTx{
			To: &stored.contract, Nonce: uint64(i), Gas: 200_000, GasPrice: big.NewInt(1), Value: new(big.Int), Data: ownSlot(i).Bytes(),
		})
	}
	header := &types.Header{
		Number: common.Big1, Time: 12, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: new(big.Int), WithdrawalsHash: &types.EmptyWithdrawalsHash,
		BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64), ParentBeaconRoot: new(common.Hash),
	}
	return stored, &config, types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: txs})
}

// ownSlot returns the slot that only the i-th transaction of blockOfReads reads.
func ownSlot(i int) common.Hash { return common.Hash{0: byte(i + 1)} }

// TestReplayAside traces a block whose transactions read slots. What happens to the transactions that run aside changes neither
// the trace nor its error, and the tracer does not see them. If no read waits, or reads take no round trips, none runs aside.
func TestReplayAside(t *testing.T) {
	const transactions = 6
	stored, config, block := blockOfReads(t, transactions)
	trace := func(t *testing.T, parent execute.Parent, count int) (gas []uint64, err error) {
		executor, err := execute.New(config)
		if err != nil {
			t.Fatal(err)
		}
		tracer := execute.Tracer{Hooks: &tracing.Hooks{OnTxEnd: func(receipt *types.Receipt, _ error) { gas = append(gas, receipt.GasUsed) }}, Stop: func(error) {}}
		parent.Header = &types.Header{Number: new(big.Int), GasLimit: block.GasLimit()}
		err = executor.Replay(t.Context(), parent, execute.Decoded(block), execute.ReplayOptions{}, func(r *execute.Replay) error {
			r.Expect(0, count)
			for range count {
				if err := r.Trace(t.Context(), tracer); err != nil {
					return err
				}
			}
			return nil
		})
		return gas, err
	}
	want, err := trace(t, execute.Parent{State: stored}, transactions)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		cold  bool
		count int
		aside func() error
		runs  bool
	}{
		"cold":              {cold: true, count: transactions, runs: true},
		"a failure":         {cold: true, count: transactions, runs: true, aside: func() error { return errors.New("failed aside") }},
		"a panic":           {cold: true, count: transactions, runs: true, aside: func() error { panic("aside") }},
		"warm":              {count: transactions},
		"cold, one to run":  {cold: true, count: 1},
		"cold, none to run": {cold: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := &distantState{State: stored, t: t, cold: test.cold, aside: test.aside}
			if test.runs {
				state.begun = make(chan struct{})
			}
			got, err := trace(t, execute.Parent{State: state, Ahead: state}, test.count)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != test.count {
				t.Fatalf("the tracer saw %d transactions, expected %d", len(got), test.count)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("transaction %d used %d gas, expected %d", i, got[i], want[i])
				}
			}
			if reads := state.runs.Load(); reads > 0 != test.runs {
				t.Errorf("%d reads of slots aside, expected some: %v", reads, test.runs)
			}
			if state.read.Load() > 0 != test.runs {
				t.Errorf("%d times accounts were read aside, expected some: %v", state.read.Load(), test.runs)
			}
		})
	}
}
