package api_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// randomChain makes chains of contracts that call, create and destroy each other at random.
type randomChain struct {
	*rand.Rand
	contracts []common.Address // in the genesis
	others    []common.Address // precompiled contracts, plain accounts, nothing
	initcode  [][]byte         // of contracts that are created, some of them again and again
	created   []common.Address // by CREATE2, with these codes
}

func newRandomChain(seed uint64) *randomChain {
	c := &randomChain{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range byte(10) {
		c.contracts = append(c.contracts, common.Address{0xc0, 19: i})
		c.others = append(c.others, common.Address{19: i + 1}, common.Address{0xe0, 19: i})
	}
	for i := range 2 {
		// What it creates destroys itself when it is called with gas enough, so that it can
		// be created again.
		code := program.New().Selfdestruct(c.others[i]).Bytes()
		c.initcode = append(c.initcode, program.New().ReturnViaCodeCopy(code).Bytes())
		for _, contract := range c.contracts[:4] {
			c.created = append(c.created, crypto.CreateAddress2(contract, common.Hash{}, crypto.Keccak256(c.initcode[i])))
		}
	}
	c.initcode = append(c.initcode, program.New().Op(vm.INVALID).Bytes(), program.New().Push(0).Push(0).Op(vm.REVERT).Bytes())
	return c
}

// anyone returns an address that may be called.
func (c *randomChain) anyone() common.Address {
	all := [][]common.Address{c.contracts, c.contracts, c.others, c.created}[c.IntN(4)]
	return all[c.IntN(len(all))]
}

// code returns the code of a contract that does a few things.
func (c *randomChain) code() []byte {
	p := program.New()
	gas := uint256.NewInt(150_000)
	for range 1 + c.IntN(5) {
		value := c.IntN(2) * c.IntN(1000)
		switch c.IntN(9) {
		case 0, 1:
			p.Call(gas, c.anyone(), value, 0, 32, 0, 0)
		case 2:
			p.StaticCall(gas, c.anyone(), 0, 32, 0, 0)
		case 3:
			p.DelegateCall(gas, c.anyone(), 0, 32, 0, 0)
		case 4:
			p.CallCode(gas, c.anyone(), value, 0, 32, 0, 0)
		case 5, 6:
			p.Create2(c.initcode[c.IntN(len(c.initcode))], 0)
		case 7:
			initcode := c.initcode[c.IntN(len(c.initcode))]
			p.Mstore(initcode, 0).Push(len(initcode)).Push(0).Push(value).Op(vm.CREATE)
		case 8:
			p.Call(gas, c.created[c.IntN(len(c.created))], 0, 0, 0, 0, 0)
		}
		p.Op(vm.POP)
	}
	switch c.IntN(6) {
	case 0:
		p.Push(0).Push(0).Op(vm.REVERT)
	case 1:
		p.Op(vm.INVALID)
	case 2:
		p.Selfdestruct(c.anyone())
	}
	return p.Bytes()
}

// build builds a chain of a few blocks under the rules of a configuration, with uncles and
// rewards before the merge and delegations (EIP-7702) from Prague on.
func (c *randomChain) build(t *testing.T, config *params.ChainConfig, blocks int) (*core.Genesis, []*types.Block) {
	t.Helper()
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	delegating, err := crypto.ToECDSA(crypto.Keccak256([]byte("delegating")))
	if err != nil {
		t.Fatal(err)
	}
	authority, authorizations := crypto.PubkeyToAddress(delegating.PublicKey), uint64(0)
	c.others = append(c.others, authority)
	genesis := madeGenesis()
	genesis.Config = config
	for _, contract := range c.contracts {
		genesis.Alloc[contract] = types.Account{Nonce: 1, Code: c.code(), Balance: big.NewInt(1_000_000)}
	}
	merged := config.TerminalTotalDifficulty != nil && config.TerminalTotalDifficulty.Sign() == 0
	// One contract only creates another one, so that it is often destroyed and created again.
	factory, phoenix := c.contracts[0], c.created[0]
	genesis.Alloc[factory] = types.Account{Nonce: 1, Code: program.New().Create2(c.initcode[0], 0).Bytes(), Balance: new(big.Int)}
	if !merged {
		genesis.Difficulty = big.NewInt(1 << 17)
	}
	_, chain, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), blocks, func(i int, b *core.BlockGen) {
		b.SetCoinbase(c.anyone())
		if merged {
			b.SetParentBeaconRoot(common.Hash{byte(i)})
		} else if i > 2 && i%3 == 0 {
			b.AddUncle(&types.Header{ParentHash: b.PrevBlock(i - 2).Hash(), Number: big.NewInt(int64(i)), Time: b.PrevBlock(i-2).Time() + 12, Coinbase: c.anyone()})
		}
		price := big.NewInt(params.GWei)
		if config.IsLondon(b.Number()) {
			price.Add(price, b.BaseFee())
		}
		for range c.IntN(6) {
			to := new(common.Address)
			*to = []common.Address{c.anyone(), c.anyone(), factory, phoenix}[c.IntN(4)]
			data := []byte(nil)
			if c.IntN(4) == 0 {
				to, data = nil, c.initcode[c.IntN(len(c.initcode))]
			}
			var tx types.TxData = &types.LegacyTx{Nonce: b.TxNonce(sender), GasPrice: price, Gas: uint64(150_000 + c.IntN(1_500_000)), To: to, Data: data}
			if merged && to != nil && c.IntN(4) == 0 {
				target := c.contracts[c.IntN(len(c.contracts))]
				auth, err := types.SignSetCode(delegating, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(config.ChainID), Address: target, Nonce: authorizations})
				if err != nil {
					t.Fatal(err)
				}
				authorizations++
				tx = &types.SetCodeTx{ChainID: uint256.MustFromBig(config.ChainID), Nonce: b.TxNonce(sender), GasTipCap: uint256.NewInt(1), GasFeeCap: uint256.MustFromBig(price), Gas: 500_000, To: []common.Address{*to, authority}[c.IntN(2)], AuthList: []types.SetCodeAuthorization{auth}}
			}
			b.AddTx(types.MustSignNewTx(key, b.Signer(), tx))
		}
	})
	return genesis, chain
}
