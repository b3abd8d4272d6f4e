package execute

import (
	"context"
	"testing"

	"ashlar/chain/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// accountsAlone is a state of accounts without anything else.
type accountsAlone struct {
	nothing
	accounts map[common.Hash]*types.StateAccount
}

func (a accountsAlone) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	return a.accounts[address], nil
}

func TestCollidingState(t *testing.T) {
	code, root := common.HexToHash("0xc0de"), common.HexToHash("0x5107")
	for i, test := range []struct {
		name    string
		account *types.StateAccount
		want    uint64
	}{
		{"no account", nil, 0},
		{"money alone", &types.StateAccount{Balance: uint256.NewInt(5), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]}, 0},
		{"storage alone", &types.StateAccount{Balance: uint256.NewInt(5), Root: root, CodeHash: types.EmptyCodeHash[:]}, 1},
		{"storage and a nonce", &types.StateAccount{Nonce: 7, Balance: new(uint256.Int), Root: root, CodeHash: types.EmptyCodeHash[:]}, 7},
		{"a contract from before EIP-158", &types.StateAccount{Balance: new(uint256.Int), Root: root, CodeHash: code[:]}, 0},
	} {
		address := common.Address{byte(i + 1)}
		parent := Parent{State: accountsAlone{accounts: map[common.Hash]*types.StateAccount{evm.HashAddress(address): test.account}}}
		statedb, err := state.New(types.EmptyRootHash, newDatabase(t.Context(), parent, true))
		if err != nil {
			t.Fatal(err)
		}
		if got := (collidingState{statedb}).GetNonce(address); got != test.want {
			t.Errorf("%s: nonce %d, expected %d", test.name, got, test.want)
		}
	}
}

// A contract that stores something while it is created, under rules where its
// nonce is 0, may create another one meanwhile.
func TestCollidingStateLeavesNewContractsAlone(t *testing.T) {
	statedb, err := state.New(types.EmptyRootHash, newDatabase(t.Context(), Parent{State: nothing{}}, true))
	if err != nil {
		t.Fatal(err)
	}
	address := common.Address{1}
	statedb.CreateAccount(address)
	statedb.SetBalance(address, uint256.NewInt(1), tracing.BalanceChangeUnspecified)
	statedb.SetState(address, common.Hash{1}, common.Hash{2})
	if got := (collidingState{statedb}).GetNonce(address); got != 0 {
		t.Errorf("nonce %d, expected 0", got)
	}
}
