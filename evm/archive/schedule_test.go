package archive

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/genesis"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// An archive of a public network has the forks that this version knows, also those that were scheduled
// after the archive was made, and may have blocks of them.
func TestScheduleOfAPublicNetwork(t *testing.T) {
	ctx, store := t.Context(), openStore(t, vfs.NewMem())
	now, _ := genesis.Builtin("sepolia")
	then, config := *now, *now.Config
	config.AmsterdamTime, then.Config = nil, &config
	a, err := Create(ctx, store, &then)
	if err != nil {
		t.Fatal(err)
	}
	first := then.ToBlock()
	second := types.NewBlockWithHeader(&types.Header{
		Number: big.NewInt(1), ParentHash: first.Hash(), Time: *now.Config.AmsterdamTime, Difficulty: new(big.Int),
		UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash,
	})
	if err := a.Append(ctx, &evm.Delta{Block: first}, &evm.Delta{Block: second}); err != nil {
		t.Fatal(err)
	}
	if a, err = Open(ctx, store); err != nil {
		t.Fatal(err)
	}
	if got := a.Genesis().Config.AmsterdamTime; got == nil || *got != *now.Config.AmsterdamTime {
		t.Errorf("the time of Amsterdam is %v, want that of this version", got)
	}
	if r, _, _, err := ReadRange(ctx, store); err != nil || r.Genesis.Config.AmsterdamTime == nil {
		t.Errorf("a join would not know of Amsterdam: %v", err)
	}
	if _, err := Create(ctx, store, now); err != nil {
		t.Errorf("the genesis with the fork: %v", err)
	}
	if _, err := Create(ctx, store, &then); !errors.Is(err, ErrOtherChain) {
		t.Errorf("the genesis without the fork of a settled block: %v, want ErrOtherChain", err)
	}
}

// busy is a store that cannot be read a number of times.
type busy struct {
	kv.Store
	left int
}

func (b *busy) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, value []byte) ([]byte, error) {
	if b.left--; b.left >= 0 {
		return nil, fmt.Errorf("busy: %w", kv.ErrUnavailable)
	}
	return b.Store.Get(ctx, t, partition, sort, value)
}

// An archive of a public network does not open with the stored forks because the store was busy: its process
// would go by them until it is started again.
func TestScheduleOfABusyStore(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	sepolia, _ := genesis.Builtin("sepolia")
	a, err := Create(t.Context(), store, sepolia)
	if err == nil {
		err = a.Append(t.Context(), &evm.Delta{Block: sepolia.ToBlock()})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), &busy{store, 1}); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a store that is busy: %v, want ErrUnavailable", err)
	}
	if _, err := Open(t.Context(), &busy{store, 0}); err != nil {
		t.Error(err)
	}
}

// A start that an earlier version began, which knew fewer forks of a public network, can be continued.
func TestScheduleOfAnInterruptedStart(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	now, _ := genesis.Builtin("sepolia")
	then, config := *now, *now.Config
	config.AmsterdamTime, then.Config = nil, &config
	at := Beginning{Ref: chain.Ref{Number: 7, Hash: common.Hash{7}}}
	if _, err := Begin(t.Context(), store, &then, at); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(t.Context(), store, now, at); err != nil {
		t.Errorf("with the forks of this version: %v", err)
	}
	other := *now
	other.GasLimit++
	if _, err := Begin(t.Context(), store, &other, at); !errors.Is(err, ErrOtherChain) {
		t.Errorf("with another genesis: %v, want ErrOtherChain", err)
	}
}
