// Package execute runs blocks and calls on go-ethereum's EVM. It is the only
// package that uses go-ethereum's state, processor and consensus APIs.
//
// A block is executed in two steps, so that a pipeline can run them on different
// processors. [Executor.Execute] runs the transactions on the state of the
// parent and checks everything but the state root; [Executor.Root] applies the
// changes to the state trie, checks the root and makes the [evm.Delta]. A block is
// valid only once both steps have succeeded. A block that breaks a rule is refused
// with a [*CheckError]; every other error leaves open whether the block is valid.
package execute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"sync/atomic"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/clique"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Executor runs the blocks and calls of one chain. Its methods may be called
// from many goroutines at once.
type Executor struct {
	config    *params.ChainConfig
	engine    consensus.Engine
	jumpDests vm.JumpDestCache
	slow      *lru.Cache[common.Hash, bool] // see codeWatch
	calls     *semaphore.Weighted           // a place for each call that runs at the same moment
	asides    *semaphore.Weighted           // a place for each block that runs aside for a search
	blobFees  *lru.Cache[blobFeeKey, *big.Int]
	prefixes  *prefixCache
	reads     *readCache
	listed    atomic.Uint64 // blocks that ran from their access lists
	parallel  atomic.Uint64 // those of them that ran in parallel

	maxCallGas uint64
	traces     bool // deltas have the traces of their blocks
}

// Option is an option of an executor.
type Option func(*Executor)

// RecordTraces, if on, records who takes part in the traces of executed blocks, and what their steps change.
func RecordTraces(on bool) Option { return func(e *Executor) { e.traces = on } }

// New makes the executor of a chain.
func New(config *params.ChainConfig, options ...Option) (*Executor, error) {
	if config == nil {
		return nil, errors.New("execute: the genesis has no chain configuration")
	}
	var proofOf consensus.Engine = ethash.NewFaker() // the library no longer checks proof-of-work seals
	if config.Clique != nil {
		proofOf = clique.New(config.Clique, rawdb.NewMemoryDatabase())
	}
	e := &Executor{
		config:    config,
		engine:    beacon.New(proofOf),
		jumpDests: core.NewJumpDestCache(),
		slow:      lru.NewCache[common.Hash, bool](knownStretches),
		calls:     newCallPlaces(),
		asides:    newCallPlaces(),
		prefixes:  newPrefixCache(),
		reads:     newReadCache(),

		maxCallGas: math.MaxUint64,
		blobFees:   lru.NewCache[blobFeeKey, *big.Int](cachedBlobFees),
	}
	for _, option := range options {
		option(e)
	}
	return e, nil
}

// LimitCallGas lowers the most gas that a call gets, which is otherwise ten times the gas
// limit of its block. It must not run at the same time as calls.
func (e *Executor) LimitCallGas(gas uint64) { e.maxCallGas = gas }

// MaxCallGas is the most gas that a call gets, whatever its block.
func (e *Executor) MaxCallGas() uint64 { return e.maxCallGas }

// Config is the chain's configuration. The caller must not change it.
func (e *Executor) Config() *params.ChainConfig { return e.config }

// ListedBlocks is how many blocks have run from the access lists that they arrived with,
// and how many of them in parallel.
func (e *Executor) ListedBlocks() (all, parallel uint64) { return e.listed.Load(), e.parallel.Load() }

// Ancestors finds the blocks before the one that is executed.
type Ancestors interface {
	// Header returns the header with that hash and number, or nil.
	Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error)
	// Block returns the block with that hash and number, or nil.
	Block(ctx context.Context, hash common.Hash, number uint64) (*types.Block, error)
	// First returns the number of the first block that is there, besides the genesis.
	First() uint64
}

// Parent is what a block is executed on.
type Parent struct {
	Header    *types.Header
	State     evm.State // after the parent
	Ancestors Ancestors // the parent and those before it; read by many goroutines at once
	Ahead     Ahead     // of State; nil if its reads take no round trips
	// TotalDifficulty is that of the chain up to and with the parent. If it is nil,
	// Execute does not check whether proof of stake begins at the right block.
	TotalDifficulty *big.Int
}

// Executed is a block that has run, its state root yet to be checked.
type Executed struct {
	Block      *types.Block // without its access list
	Senders    []common.Address
	Receipts   types.Receipts
	AccessList []byte      // RLP; nil before Amsterdam
	Traces     *evm.Traces // nil if they are not recorded
	update     *state.StateUpdate
	nodes      []evm.Node // that changed, where update does not have them
	rooted     bool       // the state root has been computed and checked, and the nodes are known
}

// Accounts are the accounts that changed, by keccak256 of their address, nil
// when gone. Until Root has run the storage root of an account is only known to
// be empty or not.
func (x *Executed) Accounts() map[common.Hash]*types.StateAccount { return x.update.Accounts }

// Slots are the slots that changed, by keccak256 of address and slot.
func (x *Executed) Slots() map[common.Hash]map[common.Hash]common.Hash { return x.update.Storages }

// Codes calls yield with the contract code that the block brought.
func (x *Executed) Codes(yield func(hash common.Hash, code []byte)) {
	for _, code := range x.update.Codes {
		if len(code.Blob) > 0 {
			yield(code.Hash, code.Blob)
		}
	}
}

// Execute runs a block whose body has passed [Executor.VerifyBody] on its parent, and
// checks its header, uncles, gas, receipts, requests and access list. A block that
// arrived with its access list runs on up to that many processors at once; any other
// takes one. Execute returns [ErrFuture] or [ErrUnknownFork] for a block that cannot be
// judged yet.
func (e *Executor) Execute(ctx context.Context, parent Parent, block *types.Block, processors int) (*Executed, error) {
	if err := e.verifyBefore(ctx, parent, block); err != nil {
		return nil, err
	}
	if block.AccessList() != nil {
		executed, err := e.executeListed(ctx, parent, block, processors)
		if err == nil {
			return executed, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Either the block is invalid or its list is. Running it without the list
		// tells which, with the error that a block without a list gets.
	}
	return e.executeInOrder(ctx, parent, block)
}

// verifyBefore makes the checks of a block that come before its execution.
func (e *Executor) verifyBefore(ctx context.Context, parent Parent, block *types.Block) error {
	if err := e.knowsRules(block.Header()); err != nil {
		return err
	}
	return e.verifyHeader(ctx, parent, block)
}

// executeListed runs a block with its access list.
func (e *Executor) executeListed(ctx context.Context, parent Parent, block *types.Block, processors int) (*Executed, error) {
	p, err := e.beginListed(ctx, parent, block)
	if err != nil {
		return nil, err
	}
	x := &Executed{update: p.listed.update()}
	return x, e.finishListed(ctx, p, x, processors)
}

// finishListed runs the transactions and completes the executed block.
func (e *Executor) finishListed(ctx context.Context, p *listedRun, x *Executed, processors int) error {
	ran, err := p.execute(ctx, processors)
	if err != nil {
		return err
	}
	if x.AccessList, err = e.verifyOutcome(p.block, ran); err != nil {
		return err
	}
	e.listed.Add(1)
	if processors > 1 {
		e.parallel.Add(1)
	}
	x.Block, x.Senders, x.Receipts, x.Traces = p.block.WithAccessListUnsafe(nil), ran.senders, ran.receipts, ran.traces
	return nil
}

// Process makes all checks of a block whose body has passed [Executor.VerifyBody], as
// Execute and Root do. The state after a block that arrived with its access list is known
// before it runs, so its root is computed meanwhile. Process is for blocks that come one
// by one; it uses all processors.
func (e *Executor) Process(ctx context.Context, parent Parent, block *types.Block) (*evm.Delta, error) {
	processors := runtime.GOMAXPROCS(0)
	if block.AccessList() == nil || processors == 1 {
		executed, err := e.Execute(ctx, parent, block, 1)
		if err != nil {
			return nil, err
		}
		return e.Root(ctx, parent.State, parent.Header.Root, executed)
	}
	if err := e.verifyBefore(ctx, parent, block); err != nil {
		return nil, err
	}
	delta, err := e.processListed(ctx, parent, block, processors)
	if err == nil || ctx.Err() != nil {
		return delta, errors.Join(err, ctx.Err())
	}
	executed, err := e.executeInOrder(ctx, parent, block) // as in Execute
	if err != nil {
		return nil, err
	}
	return e.Root(ctx, parent.State, parent.Header.Root, executed)
}

// processListed runs a block with its access list while it computes the state root.
func (e *Executor) processListed(ctx context.Context, parent Parent, block *types.Block, processors int) (*evm.Delta, error) {
	p, err := e.beginListed(ctx, parent, block)
	if err != nil {
		return nil, err
	}
	x := &Executed{update: p.listed.update()}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return x.root(inner, tries.New(0), parent.State, parent.Header.Root, block) })
	group.Go(func() error { return e.finishListed(inner, p, x, processors) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return x.delta(), nil
}

// executeAgain is Execute for a block that it has checked before. It does not check once more who may sign a
// block of clique, which takes the headers back to a checkpoint.
func (e *Executor) executeAgain(ctx context.Context, parent Parent, block *types.Block) (*Executed, error) {
	if e.config.Clique == nil {
		return e.Execute(ctx, parent, block, 1)
	}
	if err := e.knowsRules(block.Header()); err != nil {
		return nil, err
	}
	return e.executeInOrder(ctx, parent, block)
}

// executeInOrder runs a block, one transaction after the other.
func (e *Executor) executeInOrder(ctx context.Context, parent Parent, block *types.Block) (*Executed, error) {
	db := newDatabase(ctx, parent, !e.RootInline(block.Header()))
	db.newRoot = block.Root()
	statedb, ran, err := e.runOn(ctx, parent, block, db)
	if err != nil {
		return nil, err
	}
	list, err := e.verifyOutcome(block, ran)
	if err != nil {
		return nil, err
	}
	root, err := statedb.Commit(e.rules(block.Header()), block.NumberU64())
	if failed := db.failure(); failed != nil { // which the library's error says only in words
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("commit state of block %d: %w", block.NumberU64(), err)
	}
	if root != block.Root() {
		return nil, mismatch(block, CheckStateRoot, block.Root(), root)
	}
	return &Executed{
		Block: block.WithAccessListUnsafe(nil), Senders: ran.senders, Receipts: ran.receipts, AccessList: list, Traces: ran.traces,
		update: db.update, rooted: !db.flat,
	}, nil
}

// runOn runs a block on its parent, one transaction after the other, and returns the state after it, which is not
// committed, and the outcome, which is not verified. What the block reads comes from db.
func (e *Executor) runOn(ctx context.Context, parent Parent, block *types.Block, db *stateDatabase) (*state.StateDB, *outcome, error) {
	statedb, err := state.New(parent.Header.Root, db)
	if err != nil {
		return nil, nil, fmt.Errorf("open state of block %d: %w", parent.Header.Number, err)
	}
	ran, err := e.run(ctx, parent, block, statedb, &db.readFailure)
	if failed := db.failure(); failed != nil {
		return nil, nil, fmt.Errorf("execute block %d: read what it needs: %w", block.NumberU64(), failed)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, refused(block, CheckExecution, err)
	}
	return statedb, ran, nil
}

// RootInline reports whether a block has its state root computed while it executes. Before
// Byzantium every receipt holds a state root, and before Cancun an account's whole storage can be
// wiped, which needs its trie.
func (e *Executor) RootInline(header *types.Header) bool { return !e.rules(header).IsCancun }

// knowsRules returns ErrUnknownFork for a block of a fork that this version does not
// know. Under the rules of an earlier fork the block would seem to break one.
func (e *Executor) knowsRules(header *types.Header) error {
	if unknownRules(e.config, e.rules(header)) {
		return unready(header, ErrUnknownFork)
	}
	return nil
}

func (e *Executor) rules(header *types.Header) params.Rules {
	return e.config.Rules(header.Number, header.Difficulty.Sign() == 0, header.Time)
}
