// Package reference builds the demo network's blocks with go-ethereum's chain
// maker: slower than a block builder made for the purpose, but not written here,
// and so a second opinion on what the blocks have to be. Tests compare with it;
// bench/chaingen makes chain files with it.
package reference

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/triedb"

	"ashlar/evm/source/demo"
)

// batchBlocks is how many blocks are built, and held in memory, at a time.
const batchBlocks = 100

// keepBlocks is how many blocks' states pile up in memory before all but the
// newest are dropped.
const keepBlocks = 500

// chainMakerSeconds is the time between two blocks that the chain maker begins with.
const chainMakerSeconds = 10

// Block is a block with what came of it.
type Block struct {
	*types.Block
	Receipts types.Receipts
	Contents demo.Contents
}

// Builder builds the blocks of one network, one after the other. It belongs to
// one goroutine.
type Builder struct {
	config  *params.ChainConfig
	traffic *demo.Traffic
	db      ethdb.Database // in memory: the state of the newest block and of some before it
	states  int            // how many blocks' states db holds
	parent  *types.Block
}

// New begins a chain with the network's genesis.
func New(network *demo.Network) (*Builder, error) {
	genesis, err := network.Genesis()
	if err != nil {
		return nil, err
	}
	traffic, err := network.Traffic()
	if err != nil {
		return nil, err
	}
	db := rawdb.NewMemoryDatabase()
	tries := triedb.NewDatabase(db, triedb.HashDefaults)
	defer tries.Close()
	parent, err := genesis.Commit(db, tries, nil)
	if err != nil {
		return nil, fmt.Errorf("reference: genesis: %w", err)
	}
	return &Builder{config: genesis.Config, traffic: traffic, db: db, parent: parent}, nil
}

// Head is the newest block, the genesis at first.
func (b *Builder) Head() *types.Block { return b.parent }

// State is the state after the newest block. It is good until the next Build.
func (b *Builder) State() (*state.StateDB, error) {
	tries := triedb.NewDatabase(b.db, triedb.HashDefaults)
	return state.New(b.parent.Root(), state.NewDatabase(tries, nil))
}

// Build builds n more blocks and gives them to emit in order. It stops at the
// first error that emit returns and returns it; the builder is of no use then.
func (b *Builder) Build(ctx context.Context, n int, emit func(Block) error) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(n, batchBlocks)
		blocks, err := b.batch(count)
		if err != nil {
			return err
		}
		for _, block := range blocks {
			if err := emit(block); err != nil {
				return err
			}
		}
		n -= count
	}
	return nil
}

// batch builds up to batchBlocks blocks. The chain maker panics where a
// transaction is not valid; here that is an error.
func (b *Builder) batch(count int) (built []Block, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("reference: after block %d: %v", b.parent.NumberU64(), failure)
		}
	}()
	engine := &contentsEngine{Engine: beacon.New(ethash.NewFaker())}
	contents := make([]demo.Contents, 0, count)
	fill := func(_ int, block *core.BlockGen) {
		c, err := b.traffic.Next(block.Number().Uint64(), block.BaseFee())
		if err != nil {
			panic(err)
		}
		contents = append(contents, c)
		engine.contents = c
		block.OffsetTime(demo.BlockSeconds - chainMakerSeconds)
		block.SetPoS()
		block.SetCoinbase(c.FeeRecipient)
		block.SetParentBeaconRoot(c.ParentBeaconRoot)
		for _, w := range c.Withdrawals {
			block.AddWithdrawal(w)
		}
		for i, tx := range c.Transactions {
			if tx.Gas() > block.Gas() {
				panic(fmt.Sprintf("block %d: transaction %d asks for %d gas, %d are left", c.Number, i, tx.Gas(), block.Gas()))
			}
			block.AddTx(tx)
		}
	}
	blocks, receipts := core.GenerateChain(b.config, b.parent, engine, b.db, count, fill)
	built = make([]Block, count)
	for i, block := range blocks {
		built[i] = Block{Block: block, Receipts: receipts[i], Contents: contents[i]}
	}
	b.parent = blocks[count-1]
	b.states += count
	if b.states >= keepBlocks {
		b.states = 0
		if b.db, err = copyState(b.db, b.parent.Root()); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// contentsEngine sets what the chain maker has no setting for, just before it
// puts a block together: the random value, which no transaction of the traffic
// reads, and the withdrawals' indices, which change no state.
type contentsEngine struct {
	consensus.Engine
	contents demo.Contents
}

// Finalize is called once the transactions and withdrawals are done.
func (e *contentsEngine) Finalize(chain consensus.ChainHeaderReader, header *types.Header, state vm.StateDB, body *types.Body) {
	header.MixDigest = e.contents.PrevRandao
	for i, w := range body.Withdrawals {
		w.Index = e.contents.Withdrawals[i].Index
	}
	e.Engine.Finalize(chain, header, state, body)
}
