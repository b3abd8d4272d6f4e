package ingesttest

import (
	"math/big"
	"sync"
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

const (
	// CrossingBlocks is how many blocks Crossing has.
	CrossingBlocks = 12
	// CrossingFork is the first block of Amsterdam in Crossing.
	CrossingFork = 5

	crossingSeconds = 10 // between two blocks, as go-ethereum's chain maker has it
)

// Crossing is a chain that goes from Osaka into Amsterdam, built by go-ethereum. The
// blocks of Amsterdam have their access lists with them. Their transactions depend
// on each other: they write the same slots and accounts, create contracts that later
// ones call, and delegate accounts that later ones call. It is built once and must
// not be changed.
func Crossing(t testing.TB) (*core.Genesis, []*types.Block) {
	t.Helper()
	genesis, blocks, err := BuildCrossing()
	if err != nil {
		t.Fatal(err)
	}
	return genesis, blocks
}

// BuildCrossing is [Crossing] with its error.
func BuildCrossing() (*core.Genesis, []*types.Block, error) {
	chain, err := crossing()
	if err != nil {
		return nil, nil, err
	}
	return chain.genesis, chain.blocks, nil
}

// Diverging has the first shared blocks of the chain of [Crossing], and as many blocks in
// all. Its other blocks do more: they also create contracts with a code that no block of
// Crossing has.
func Diverging(t testing.TB, shared int) []*types.Block {
	t.Helper()
	c, err := newCrosser()
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, _ := core.GenerateChainWithGenesis(c.genesis, beacon.New(ethash.NewFaker()), CrossingBlocks, func(i int, b *core.BlockGen) {
		c.fill(i, b)
		if i >= shared {
			c.send(b, 0, &StoreContract, 0, append(common.BigToHash(big.NewInt(9)).Bytes(), common.BigToHash(big.NewInt(8)).Bytes()...))
			c.send(b, 1, nil, 0, program.New().ReturnViaCodeCopy(program.New().Push(1_000_000+i).Op(vm.STOP).Bytes()).Bytes())
		}
	})
	if c.err != nil {
		t.Fatal(c.err)
	}
	return blocks
}

type crossingChain struct {
	genesis *core.Genesis
	blocks  []*types.Block
}

var crossing = sync.OnceValues(func() (*crossingChain, error) {
	c, err := newCrosser()
	if err != nil {
		return nil, err
	}
	_, blocks, _ := core.GenerateChainWithGenesis(c.genesis, beacon.New(ethash.NewFaker()), CrossingBlocks, c.fill)
	return &crossingChain{c.genesis, blocks}, c.err
})

// StoreContract stores, in the chain of [Crossing], the second word that it is called
// with in the slot that the first names, and logs the slot's value before.
var StoreContract = common.HexToAddress("0x5704e")

// storeCode is the code of StoreContract.
func storeCode() []byte {
	return program.New().
		Push(0).Op(vm.CALLDATALOAD).Op(vm.SLOAD).Push(0).Op(vm.MSTORE). // the value before
		Push(0).Op(vm.CALLDATALOAD).Push(32).Push(0).Op(vm.LOG1).
		Push(32).Op(vm.CALLDATALOAD).Push(0).Op(vm.CALLDATALOAD).Op(vm.SSTORE).Bytes()
}

// crosser builds the chain of [Crossing].
type crosser struct {
	genesis  *core.Genesis
	senders  []*crosserSender
	deployed []common.Address
	err      error
}

// crosserSender is an account that sends transactions.
type crosserSender struct {
	address   common.Address
	sign      func(types.Signer, types.TxData) (*types.Transaction, error)
	authorize func(types.SetCodeAuthorization) (types.SetCodeAuthorization, error)
}

func newCrosser() (*crosser, error) {
	config := *params.MergedTestChainConfig
	fork := uint64(CrossingFork * crossingSeconds)
	config.OsakaTime, config.AmsterdamTime, config.BogotaTime, config.UBTTime = new(uint64), &fork, nil, nil
	schedule := *params.DefaultBlobSchedule
	config.BlobScheduleConfig = &schedule
	code := func(code []byte) types.Account { return types.Account{Nonce: 1, Code: code, Balance: new(big.Int)} }
	c := &crosser{genesis: &core.Genesis{
		Config: &config, GasLimit: 60_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee),
		Alloc: types.GenesisAlloc{
			params.BeaconRootsAddress:        code(params.BeaconRootsCode),
			params.HistoryStorageAddress:     code(params.HistoryStorageCode),
			params.WithdrawalQueueAddress:    code(params.WithdrawalQueueCode),
			params.ConsolidationQueueAddress: code(params.ConsolidationQueueCode),
			params.BuilderDepositAddress:     code(params.BuilderDepositCode),
			params.BuilderExitAddress:        code(params.BuilderExitCode),
			StoreContract:                    code(storeCode()),
		},
	}}
	for i := range byte(4) {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte{'c', i}))
		if err != nil {
			return nil, err
		}
		s := &crosserSender{address: crypto.PubkeyToAddress(key.PublicKey)}
		s.sign = func(signer types.Signer, data types.TxData) (*types.Transaction, error) {
			return types.SignNewTx(key, signer, data)
		}
		s.authorize = func(a types.SetCodeAuthorization) (types.SetCodeAuthorization, error) {
			return types.SignSetCode(key, a)
		}
		c.senders = append(c.senders, s)
		c.genesis.Alloc[s.address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether))}
	}
	return c, nil
}

// fill puts the transactions of block i+1 into it.
func (c *crosser) fill(i int, b *core.BlockGen) {
	b.SetCoinbase(common.Address{0: 0xfe, 19: byte(i % 3)})
	b.SetParentBeaconRoot(common.Hash{31: byte(i)})
	n := func(n int) common.Hash { return common.BigToHash(big.NewInt(int64(n))) }
	store := func(slot, value int) []byte { return append(n(slot).Bytes(), n(value).Bytes()...) }
	to := func(a common.Address) *common.Address { return &a }
	fresh := common.Address{0: 0xee, 18: byte(i), 19: 1}

	c.send(b, 0, to(fresh), 1_000_000+i, nil)                                  // an account comes to be,
	c.send(b, 1, to(fresh), 5, nil)                                            // and gets more
	c.send(b, 0, &StoreContract, 0, store(1, i+1))                             // a slot is written twice in a block,
	c.send(b, 2, &StoreContract, 0, store(1, 2*i+2))                           // which the log of the second shows
	c.send(b, 3, &StoreContract, 0, store(100+i, i%3))                         // sometimes zero stays zero
	c.send(b, 3, &StoreContract, 0, store(98+i, 0))                            // and a slot is cleared
	c.send(b, 1, nil, 3, program.New().ReturnViaCodeCopy(storeCode()).Bytes()) // creation,
	c.deployed = append(c.deployed, crypto.CreateAddress(c.senders[1].address, b.TxNonce(c.senders[1].address)-1))
	c.send(b, 2, &c.deployed[i], 0, store(7, i))                                                   // and a call of what was created
	c.send(b, 0, nil, 9, program.New().Selfdestruct(common.Address{0: 0xdd, 19: byte(i)}).Bytes()) // gone at once
	c.send(b, 3, nil, 0, program.New().Push(0).Push(0).Op(vm.REVERT).Bytes())                      // a transaction that fails
	c.delegate(b, i, 2, 1, StoreContract)
	c.send(b, 0, &c.senders[1].address, 1, store(3, i))   // runs the delegated code
	c.send(b, 1, &c.senders[0].address, 77, nil)          // between senders
	c.send(b, 2, to(b.PrevBlock(i-1).Coinbase()), 8, nil) // to the last beneficiary
	if i%4 == 3 {
		b.AddWithdrawal(&types.Withdrawal{Validator: 7, Address: fresh, Amount: 11})
	}
}

// send adds a transaction with some value and data.
func (c *crosser) send(b *core.BlockGen, from int, to *common.Address, value int, data []byte) {
	tip := big.NewInt(params.GWei)
	c.add(b, from, &types.DynamicFeeTx{
		ChainID: c.genesis.Config.ChainID, Nonce: b.TxNonce(c.senders[from].address), GasTipCap: tip,
		GasFeeCap: new(big.Int).Add(tip, b.BaseFee()), Gas: 1_500_000, To: to, Value: big.NewInt(int64(value)), Data: data,
	})
}

// delegate adds a transaction of one sender that delegates another to a contract, and
// back in every other block.
func (c *crosser) delegate(b *core.BlockGen, i, from, who int, to common.Address) {
	if i%2 == 1 {
		to = common.Address{}
	}
	authorization, err := c.senders[who].authorize(types.SetCodeAuthorization{
		ChainID: *uint256.MustFromBig(c.genesis.Config.ChainID), Address: to, Nonce: b.TxNonce(c.senders[who].address),
	})
	if err != nil {
		c.err = err
		return
	}
	c.add(b, from, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(c.genesis.Config.ChainID), Nonce: b.TxNonce(c.senders[from].address),
		GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.MustFromBig(new(big.Int).Add(b.BaseFee(), big.NewInt(params.GWei))),
		Gas: 500_000, To: common.Address{0: 0xaa}, Value: new(uint256.Int), AuthList: []types.SetCodeAuthorization{authorization},
	})
}

func (c *crosser) add(b *core.BlockGen, from int, data types.TxData) {
	tx, err := c.senders[from].sign(b.Signer(), data)
	if err != nil {
		c.err = err
		return
	}
	b.AddTx(tx)
}
