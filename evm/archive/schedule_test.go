package archive

import (
	"errors"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/evm/genesis"

	"github.com/cockroachdb/pebble/v2/vfs"
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
