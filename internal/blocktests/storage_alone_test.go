package blocktests

import (
	"math/big"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// TestChangesOfStorageAlone: no contract can be created at an address that has storage, but neither code nor nonce (EIP-7610). A
// trace that takes the account from stored changes must know that, although they do not have its storage root.
func TestChangesOfStorageAlone(t *testing.T) {
	config, err := chainConfig("Cancun", nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		t.Fatal(err)
	}
	factory, initcode := common.Address{0xfa}, program.New().ReturnData([]byte{0}).Bytes()
	taken := crypto.CreateAddress2(factory, common.Hash{}, crypto.Keccak256(initcode))
	genesis := &core.Genesis{
		Config: config, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee),
		Alloc: types.GenesisAlloc{
			factory:                               {Code: program.New().Create2(initcode, 0).Bytes(), Balance: new(big.Int)},
			taken:                                 {Balance: big.NewInt(1), Storage: map[common.Hash]common.Hash{{31: 1}: {31: 1}}},
			crypto.PubkeyToAddress(key.PublicKey): {Balance: ether(1)},
		},
	}
	target := targetOf(t, genesis, nil)
	var transactions types.Transactions
	for nonce, to := range []common.Address{taken, factory, taken} { // the last one makes the balances between them differ from that after the block
		value := new(big.Int)
		if to == taken {
			value.SetUint64(1)
		}
		transactions = append(transactions, types.MustSignNewTx(key, types.LatestSigner(config), &types.LegacyTx{
			Nonce: uint64(nonce), GasPrice: genesis.BaseFee, Gas: 200_000, To: &to, Value: value,
		}))
	}
	parent := execute.Parent{Header: genesis.ToBlock().Header(), State: target.archive.StateAt(0), Ancestors: archive.Ancestors{History: &target.archive.History}}
	built, leftOut, err := target.executor.Build(t.Context(), parent, execute.Attributes{Timestamp: 12, GasLimit: genesis.GasLimit}, transactions)
	if err != nil || len(leftOut) > 0 {
		t.Fatal(leftOut, err)
	}
	blocks := []*types.Block{built.Block}
	if err := target.importBlocks(t.Context(), blocks, nil); err != nil {
		t.Fatal(err)
	}
	var r result
	if err := target.checkChanges(t.Context(), blocks, &r); err != nil || r.skipped != 2 {
		t.Errorf("%d transactions were skipped to, %v, expected 2", r.skipped, err)
	}
}
