package execute

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
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
		if got := (&collidingState{warmState: warmState{StateDB: statedb}}).GetNonce(address); got != test.want {
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
	if got := (&collidingState{warmState: warmState{StateDB: statedb}}).GetNonce(address); got != 0 {
		t.Errorf("nonce %d, expected 0", got)
	}
}

// Accounts that have storage from the genesis on, and a key, can send transactions and
// authorizations like any other.
func TestKeysOfAccountsWithStorage(t *testing.T) {
	var keys [3]*ecdsa.PrivateKey
	var addresses [3]common.Address
	for i := range keys {
		key, err := crypto.ToECDSA(word(uint64(i + 1)).Bytes())
		if err != nil {
			t.Fatal(err)
		}
		keys[i], addresses[i] = key, crypto.PubkeyToAddress(key.PublicKey)
	}
	sender, authority, payer := 0, 1, 2
	stored := map[common.Hash]common.Hash{word(1): word(7)}
	config := osakaConfig()
	genesis := &core.Genesis{Config: config, GasLimit: 8_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee), Alloc: types.GenesisAlloc{
		addresses[sender]:                {Balance: big.NewInt(params.Ether), Storage: stored},
		addresses[authority]:             {Balance: new(big.Int), Storage: stored},
		addresses[payer]:                 {Balance: big.NewInt(params.Ether)},
		params.WithdrawalQueueAddress:    {Balance: new(big.Int), Code: params.WithdrawalQueueCode},
		params.ConsolidationQueueAddress: {Balance: new(big.Int), Code: params.ConsolidationQueueCode},
	}}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 1, func(_ int, b *core.BlockGen) {
		authorization, err := types.SignSetCode(keys[authority], types.SetCodeAuthorization{Address: addresses[payer]})
		if err != nil {
			t.Fatal(err)
		}
		b.AddTx(types.MustSignNewTx(keys[sender], b.Signer(), &types.LegacyTx{To: &addresses[payer], Gas: 100_000, GasPrice: b.BaseFee()}))
		b.AddTx(types.MustSignNewTx(keys[payer], b.Signer(), &types.SetCodeTx{
			ChainID: uint256.MustFromBig(config.ChainID), To: addresses[sender], Gas: 100_000, GasFeeCap: uint256.MustFromBig(b.BaseFee()),
			GasTipCap: new(uint256.Int), Value: new(uint256.Int), AuthList: []types.SetCodeAuthorization{authorization},
		}))
	})
	first, err := Genesis(t.Context(), genesis)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	after := newKept()
	after.put(first)
	executed, err := executor.Execute(t.Context(), Parent{Header: first.Block.Header(), State: after, Ancestors: after}, blocks[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := executor.Root(t.Context(), after, first.Block.Root(), executed); err != nil {
		t.Error(err) // the authority's code and nonce are in it
	}
}

// A tracer sees an account that has storage alone as it is, without the nonce with which the EVM refuses to
// create a contract there.
func TestTracersSeeAccountsWithStorage(t *testing.T) {
	key, err := crypto.ToECDSA(word(1).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	stored := common.Address{0x51}
	genesis := &core.Genesis{Config: osakaConfig(), GasLimit: 8_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee), Alloc: types.GenesisAlloc{
		crypto.PubkeyToAddress(key.PublicKey): {Balance: big.NewInt(params.Ether)},
		stored:                                {Balance: new(big.Int), Storage: map[common.Hash]common.Hash{word(1): word(7)}},
		params.WithdrawalQueueAddress:         {Balance: new(big.Int), Code: params.WithdrawalQueueCode},
		params.ConsolidationQueueAddress:      {Balance: new(big.Int), Code: params.ConsolidationQueueCode},
	}}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 1, func(_ int, b *core.BlockGen) {
		b.AddTx(types.MustSignNewTx(key, b.Signer(), &types.LegacyTx{To: &stored, Value: big.NewInt(1), Gas: 100_000, GasPrice: b.BaseFee()}))
	})
	first, err := Genesis(t.Context(), genesis)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := New(genesis.Config)
	if err != nil {
		t.Fatal(err)
	}
	after := newKept()
	after.put(first)
	var env *tracing.VMContext
	var before, afterwards uint64
	tracer := Tracer{Stop: func(error) {}, Hooks: &tracing.Hooks{
		OnTxStart: func(started *tracing.VMContext, _ *types.Transaction, _ common.Address) {
			env = started
			before = env.StateDB.GetNonce(stored)
		},
		OnTxEnd: func(*types.Receipt, error) { afterwards = env.StateDB.GetNonce(stored) },
	}}
	parent := Parent{Header: first.Block.Header(), State: after, Ancestors: after}
	if err := executor.Replay(t.Context(), parent, Decoded(blocks[0]), ReplayOptions{}, func(r *Replay) error { return r.Trace(t.Context(), tracer) }); err != nil {
		t.Fatal(err)
	}
	if balance := env.StateDB.GetBalance(stored); before != 0 || afterwards != 0 || balance.Uint64() != 1 {
		t.Errorf("a tracer saw the nonces %d and %d, and the balance %d, want 0, 0 and 1", before, afterwards, balance)
	}
}
