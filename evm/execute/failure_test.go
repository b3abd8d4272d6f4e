package execute

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
)

// kept is a chain of which everything is kept in memory, and one read of which fails.
type kept struct {
	accounts map[common.Hash]*types.StateAccount
	slots    map[common.Hash]map[common.Hash]common.Hash
	codes    map[common.Hash][]byte
	nodes    map[string][]byte // by owner and path
	blocks   map[common.Hash]*types.Block

	reads, failing atomic.Int64 // how many there were, and which is to fail; the first is 1
}

func newKept() *kept {
	return &kept{
		accounts: make(map[common.Hash]*types.StateAccount), slots: make(map[common.Hash]map[common.Hash]common.Hash),
		codes: make(map[common.Hash][]byte), nodes: make(map[string][]byte), blocks: make(map[common.Hash]*types.Block),
	}
}

// fail lets a read fail, counted from now on.
func (k *kept) fail(read int64) {
	k.reads.Store(0)
	k.failing.Store(read)
}

func (k *kept) read() error {
	if k.reads.Add(1) == k.failing.Load() {
		return errDisk
	}
	return nil
}

func (k *kept) put(delta *evm.Delta) {
	k.blocks[delta.Block.Hash()] = delta.Block
	for address, account := range delta.Accounts {
		k.accounts[address] = account
	}
	for address, slots := range delta.Slots {
		if k.slots[address] == nil {
			k.slots[address] = make(map[common.Hash]common.Hash)
		}
		for slot, value := range slots {
			k.slots[address][slot] = value
		}
	}
	for hash, code := range delta.Codes {
		k.codes[hash] = code
	}
	for _, node := range delta.Nodes {
		k.nodes[string(node.Owner[:])+node.Path] = node.Blob
	}
}

func (k *kept) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	if account := k.accounts[address]; account != nil {
		return account.Copy(), k.read()
	}
	return nil, k.read()
}

func (k *kept) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	if err := k.read(); err != nil {
		return common.Hash{}, err
	}
	return k.slots[address][slot], nil
}

func (k *kept) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	return k.codes[hash], k.read()
}

func (k *kept) Node(_ context.Context, owner common.Hash, path []byte, _ common.Hash) ([]byte, error) {
	if err := k.read(); err != nil {
		return nil, err
	}
	return k.nodes[string(owner[:])+string(path)], nil
}

func (k *kept) Header(_ context.Context, hash common.Hash, _ uint64) (*types.Header, error) {
	if err := k.read(); err != nil {
		return nil, err
	}
	if block := k.blocks[hash]; block != nil {
		return block.Header(), nil
	}
	return nil, nil
}

func (k *kept) Block(_ context.Context, hash common.Hash, _ uint64) (*types.Block, error) {
	if err := k.read(); err != nil {
		return nil, err
	}
	return k.blocks[hash], nil
}

func (*kept) First() uint64 { return 0 }

// remembering is code that keeps what BLOCKHASH says of a block further back than
// the parent's parent, at a slot of the block's number, and clears that of the block before.
func remembering() []byte {
	return program.New().
		Push(3).Op(vm.NUMBER, vm.SUB, vm.BLOCKHASH, vm.NUMBER, vm.SSTORE).
		Push(0).Push(1).Op(vm.NUMBER, vm.SUB, vm.SSTORE).Bytes()
}

// failingChain is a chain whose last block, which is not kept yet, can be executed
// while reads fail.
type failingChain struct {
	*kept
	executor *Executor
	parent   Parent
	block    *types.Block
}

var doomed = common.HexToAddress("0xdead")

const failingBlocks = 5 // so that BLOCKHASH looks for a block between those that are at hand and the genesis

func newFailingChain(t *testing.T, config *params.ChainConfig) *failingChain {
	t.Helper()
	key, err := crypto.ToECDSA(common.Hash{31: 1}.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	from := crypto.PubkeyToAddress(key.PublicKey)
	genesis := &core.Genesis{Config: config, Difficulty: big.NewInt(1 << 17), GasLimit: 8_000_000, Alloc: types.GenesisAlloc{
		from:     {Balance: big.NewInt(params.Ether)},
		contract: {Balance: new(big.Int), Code: remembering(), Storage: make(map[common.Hash]common.Hash)},
		doomed:   {Balance: new(big.Int), Code: program.New().Op(vm.CALLER, vm.SELFDESTRUCT).Bytes(), Storage: make(map[common.Hash]common.Hash)},
	}}
	for i := range 40 { // so that the tries have some depth
		genesis.Alloc[common.Address{1, byte(i)}] = types.Account{Balance: big.NewInt(1)}
		for _, address := range []common.Address{contract, doomed} {
			genesis.Alloc[address].Storage[word(uint64(i))] = word(1)
		}
	}
	c := &failingChain{kept: newKept()}
	if c.executor, err = New(config); err != nil {
		t.Fatal(err)
	}
	pay := func(nonce uint64, to common.Address) *types.Transaction {
		return types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{Nonce: nonce, To: &to, Gas: 100_000, GasPrice: big.NewInt(params.GWei), Value: new(big.Int)})
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), failingBlocks, func(i int, b *core.BlockGen) {
		b.AddTx(pay(b.TxNonce(from), common.Address{byte(i + 1)}))
	})
	delta, err := Genesis(t.Context(), genesis)
	if err != nil {
		t.Fatal(err)
	}
	for _, c.block = range blocks {
		c.put(delta)
		c.parent = Parent{Header: delta.Block.Header(), State: c, Ancestors: c}
		if delta, err = c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.add(t, pay(failingBlocks, contract), pay(failingBlocks+1, doomed))
	return c
}

// add adds transactions to the last block, which go-ethereum's maker of chains
// cannot make: there BLOCKHASH has no blocks to look at.
func (c *failingChain) add(t *testing.T, transactions ...*types.Transaction) {
	t.Helper()
	header, body := c.block.Header(), c.block.Body()
	body.Transactions = append(body.Transactions, transactions...)
	db := newDatabase(t.Context(), c.parent, false)
	statedb, err := state.New(c.parent.Header.Root, db)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := c.executor.run(t.Context(), c.parent, types.NewBlockWithHeader(header).WithBody(*body), statedb, &db.readFailure)
	if err != nil {
		t.Fatal(err)
	}
	header.GasUsed, header.Root = ran.gasUsed, statedb.IntermediateRoot(c.executor.rules(header))
	c.block = types.NewBlock(header, body, ran.receipts, trie.NewStackTrie(nil))
}

// run executes the last block as the pipeline does.
func (c *failingChain) run(ctx context.Context) (*evm.Delta, error) {
	executed, err := c.executor.Execute(ctx, c.parent, c.block, 1)
	if err != nil {
		return nil, err
	}
	return c.executor.Root(ctx, c, c.parent.Header.Root, executed)
}

// build builds a block with the transactions of the last.
func (c *failingChain) build(ctx context.Context) error {
	_, leftOut, err := c.executor.Build(ctx, c.parent, Attributes{Timestamp: c.block.Time(), GasLimit: c.block.GasLimit()}, c.block.Transactions())
	if err == nil && len(leftOut) > 0 {
		return fmt.Errorf("left out: %w", leftOut[0].Err)
	}
	return err
}

// Whatever cannot be read while a block is executed is told as that: it says nothing
// of the block.
func TestFailedReadsAreNoFaultOfTheBlock(t *testing.T) {
	homestead := &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: new(big.Int), Ethash: new(params.EthashConfig), TerminalTotalDifficulty: big.NewInt(1 << 60)}
	cancun := osakaConfig()
	cancun.PragueTime, cancun.OsakaTime = nil, nil
	for _, test := range []struct {
		name   string
		config *params.ChainConfig
		build  bool
	}{
		{"a block with state roots in its receipts", homestead, false},
		{"a block whose root is computed afterwards", cancun, false},
		{"a block that is built", cancun, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newFailingChain(t, test.config)
			for read := int64(1); ; read++ {
				c.fail(read)
				var err error
				if test.build {
					err = c.build(t.Context())
				} else {
					_, err = c.run(t.Context())
				}
				if c.reads.Load() < read { // none is left to fail
					if err != nil || read < 20 {
						t.Errorf("after %d reads: %v", read-1, err)
					}
					return
				}
				var refused *CheckError
				if !errors.Is(err, errDisk) || errors.As(err, &refused) {
					t.Errorf("read %d failed: got %v, expected what it failed with", read, err)
				}
			}
		})
	}
}
