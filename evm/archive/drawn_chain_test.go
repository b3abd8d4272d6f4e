package archive_test

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// shortLived returns a chain by the rules of Petersburg, in which contracts are created and destroyed within blocks.
func shortLived() (*core.Genesis, []*types.Block, error) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		return nil, nil, err
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	// Called with two words it stores the second in the slot given by the first, and logs it; called without input it destroys itself.
	stores := common.FromHex("0x3660065733ff5b60203560003555" + "60203560006000a1" + "00")
	number := new(big.Int)
	genesis := &core.Genesis{
		Config: &params.ChainConfig{
			ChainID: big.NewInt(1), HomesteadBlock: number, EIP150Block: number, EIP155Block: number, EIP158Block: number,
			ByzantiumBlock: number, ConstantinopleBlock: number, PetersburgBlock: number, Ethash: new(params.EthashConfig),
		},
		GasLimit: 30_000_000, Difficulty: big.NewInt(1 << 17),
		Alloc: types.GenesisAlloc{sender: {Balance: big.NewInt(params.Ether)}},
	}
	var factories, made []common.Address // of which each makes a contract with other code
	for i := range byte(3) {
		initcode := program.New().ReturnData(append(stores, i)).Bytes()
		factory := common.Address{0xfa, i}
		genesis.Alloc[factory] = types.Account{Code: program.New().Create2(initcode, 0).Bytes(), Balance: new(big.Int)}
		factories, made = append(factories, factory), append(made, crypto.CreateAddress2(factory, common.Hash{}, crypto.Keccak256(initcode)))
	}
	type call struct {
		to   common.Address
		data []byte
	}
	set := func(of int, value byte) call { return call{made[of], append(make([]byte, 63), value)} }
	create, destroy := func(of int) call { return call{to: factories[of]} }, func(of int) call { return call{to: made[of]} }
	calls := [][]call{ // by block
		{create(0), create(1), create(2), destroy(2), destroy(1), destroy(0)}, // codes that are gone after the block
		{create(0), set(0, 7)},
		{set(0, 8), create(1), set(0, 7), destroy(1), create(1)}, // a slot, and a code that is back
		{destroy(1), create(2), create(1)},
		{set(1, 0), destroy(2)},
		{set(1, 5), set(1, 0), destroy(1)}, // its slots cannot be named
		{destroy(0), create(1)},            // nor these
		{create(0), set(0, 1)},
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, ethash.NewFaker(), len(calls), func(i int, g *core.BlockGen) {
		for _, c := range calls[i] {
			g.AddTx(types.MustSignNewTx(key, g.Signer(), &types.LegacyTx{Nonce: g.TxNonce(sender), GasPrice: big.NewInt(params.GWei), Gas: 500_000, To: &c.to, Data: c.data}))
		}
	})
	return genesis, blocks, nil
}
