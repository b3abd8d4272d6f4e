package blocktests

import (
	"math/big"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// phoenix is a factory that creates the same contract at the same address again
// and again. The contract stores a word in the slot that it is called with, or
// destroys itself when it is called with nothing; it begins with one in slot 1.
func phoenix() (factory []byte, contract common.Address, at common.Address) {
	at = common.HexToAddress("0xfac7")
	// CALLDATASIZE; if it is not 0 go to 7, else SELFDESTRUCT(CALLER).
	// 7: JUMPDEST, SSTORE(CALLDATALOAD(0), 1), STOP
	code := []byte{0x36, 0x60, 0x06, 0x57, 0x33, 0xff, 0x5b, 0x60, 0x01, 0x5f, 0x35, 0x55, 0x00}
	initcode := program.New().Sstore(1, 1).ReturnData(code).Bytes()
	return program.New().Create2(initcode, 0).Bytes(), crypto.CreateAddress2(at, common.Hash{}, crypto.Keccak256(initcode)), at
}

// call is a transaction that calls a contract.
type call struct {
	to   common.Address
	data []byte
}

// Before Cancun SELFDESTRUCT wipes an account's storage, which the shared tests
// hardly do to storage that is in the archive already.
func TestWipedStorage(t *testing.T) {
	factory, contract, at := phoenix()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"Shanghai", "Cancun"} {
		config, err := chainConfig(network, nil)
		if err != nil {
			t.Fatal(err)
		}
		genesis := &core.Genesis{
			Config: config, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee),
			Alloc: types.GenesisAlloc{at: {Code: factory, Balance: new(big.Int)}, crypto.PubkeyToAddress(key.PublicKey): {Balance: big.NewInt(params.Ether)}},
		}
		create, destroy := call{to: at}, call{to: contract}
		slot := func(n byte) call { return call{contract, common.Hash{31: n}.Bytes()} }
		calls := [][]call{ // of each block
			{create}, {slot(7), slot(8), slot(200)}, {destroy}, {create}, {slot(9)}, {destroy, create}, {slot(8), destroy}, {create, slot(7)},
		}
		_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), len(calls), func(i int, b *core.BlockGen) {
			for _, c := range calls[i] {
				b.AddTx(types.MustSignNewTx(key, b.Signer(), &types.LegacyTx{
					Nonce: b.TxNonce(crypto.PubkeyToAddress(key.PublicKey)), GasPrice: b.BaseFee(), Gas: 1_000_000, To: &c.to, Data: c.data,
				}))
			}
		})
		// The slots that are set after each block; where there are none the contract is gone.
		want := [][]byte{{1}, {1, 7, 8, 200}, {}, {1}, {1, 9}, {1}, {}, {1, 7}}
		if network == "Cancun" { // where nothing is destroyed that another transaction created
			want = [][]byte{{1}, {1, 7, 8, 200}, {1, 7, 8, 200}, {1, 7, 8, 200}, {1, 7, 8, 9, 200}, {1, 7, 8, 9, 200}, {1, 7, 8, 9, 200}, {1, 7, 8, 9, 200}}
		}
		t.Run(network, func(t *testing.T) { checkSlotsByBlock(t, genesis, blocks, contract, want) })
	}
}

// checkSlotsByBlock imports blocks and reads the slots of a contract as of each.
func checkSlotsByBlock(t *testing.T, genesis *core.Genesis, blocks []*types.Block, contract common.Address, want [][]byte) {
	target := targetOf(t, genesis, blocks)
	if err := target.checkChanges(t.Context(), blocks, new(result)); err != nil {
		t.Error(err)
	}
	for i, slots := range want {
		number := uint64(i + 1)
		if err := target.checkTries(t.Context(), number); err != nil {
			t.Errorf("block %d: %v", number, err)
		}
		state := target.archive.StateAt(number)
		account, err := state.Account(t.Context(), evm.HashAddress(contract))
		if err != nil {
			t.Fatal(err)
		}
		if (account != nil) != (len(slots) > 0) {
			t.Errorf("block %d: the contract is %v", number, account)
		}
		var got []byte
		for n := range 256 {
			word, err := state.Slot(t.Context(), evm.HashAddress(contract), evm.HashSlot(common.Hash{31: byte(n)}))
			if err != nil {
				t.Fatal(err)
			}
			if word != (common.Hash{}) {
				got = append(got, byte(n))
			}
		}
		if string(got) != string(slots) {
			t.Errorf("block %d: the slots %d are set, expected %d", number, got, slots)
		}
	}
}
