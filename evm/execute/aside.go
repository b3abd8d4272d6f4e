package execute

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/semaphore"
)

// Ahead is what a state has besides [evm.State] if its reads take a round trip, and it keeps what was read. It is safe for
// concurrent use.
type Ahead interface {
	// CountWaits returns a context that adds to waits how often a read of the state waits for a round trip.
	CountWaits(ctx context.Context, waits *atomic.Int64) context.Context
	// Aside returns a context for reads that are made only so that a later one need not wait.
	Aside(ctx context.Context) context.Context
	// Read reads accounts, by keccak256 of their addresses, side by side, and then their codes. An error recurs when
	// they are read again.
	Read(ctx context.Context, accounts []common.Hash)
	// ReadPaths reads the trie nodes on the paths to accounts and to their slots, as Read does.
	ReadPaths(ctx context.Context, slots map[common.Hash][]common.Hash)
}

const (
	// asideAfter is how many waits show that what a replay reads is not in memory. If it is, nothing runs aside.
	asideAfter = 3
	// asideShare is how many reads there may be for each wait. If there are more, the replay takes more time to run than to
	// wait, and running everything twice would only take processors from other requests.
	asideShare = 64
	asideRuns  = 32 // transactions of a replay that run aside at once
)

// asideRun runs transactions of a block that is replayed aside, several at once, only so that what they read is in
// memory when the replay comes to them:
//
//	replay   | 0: waits, waits, waits | 0: waits ...   | 1 | 2 | 3 | ...
//	aside                             | 1: waits ...   |
//	                                  | 2: waits ...   |
//	                                  | 3: waits ...   |
//
// Each begins with the state that the stored access list or changes of the block say. Without these it begins with
// the state before the block, and its sender has the nonce and the balance that it needs. That is a guess: if it reads
// other things than the replay does, the replay waits for these. An error, too, recurs in the replay.
//
// The replay calls expect, waited and stop. They do nothing if asideRun is nil.
type asideRun struct {
	executor *Executor
	ctx      context.Context // of the runs aside
	cancel   context.CancelFunc
	parent   Parent
	block    Block
	options  ReplayOptions
	reads    *stateReads // of the replay; may be nil

	waits    atomic.Int64 // of the replay
	calls    atomic.Int64 // of waited
	expected []int        // transactions, in any order; must not be changed once the runs have begun
	paths    asidePaths
	named    []common.Hash // accounts of which it is known that they are needed, besides those of transactions
	begun    atomic.Bool
	runs     sync.WaitGroup
}

// asidePaths says whose trie nodes a replay needs.
type asidePaths byte

const (
	noPaths    asidePaths = iota
	writePaths            // of accounts and slots that it writes, for state roots
	readPaths             // of all that it reads, for a witness
)

// systemCalls stands for the index of a transaction: the system calls before the first one.
const systemCalls = -1

// newAsideRun returns what runs transactions of a replay aside, nil if reads of the state take no round trips, and
// the context with which the replay must read. It must be stopped.
func (e *Executor) newAsideRun(ctx context.Context, parent Parent, block Block, options ReplayOptions) (*asideRun, context.Context) {
	if parent.Ahead == nil {
		return nil, ctx
	}
	a := &asideRun{executor: e, parent: parent, block: block, options: options}
	a.ctx, a.cancel = context.WithCancel(parent.Ahead.Aside(ctx))
	return a, parent.Ahead.CountWaits(ctx, &a.waits)
}

// expect says that the transactions from first up to but without end are going to run.
func (a *asideRun) expect(first, end int) {
	if a == nil || a.begun.Load() {
		return
	}
	for i := first; i < end; i++ {
		a.expected = append(a.expected, i)
	}
}

// expectWhole says that a block is going to run as a whole, and that the trie nodes of what it reads are needed.
func (a *asideRun) expectWhole(block *types.Block) {
	if a == nil {
		return
	}
	a.paths = readPaths
	a.expect(systemCalls, len(block.Transactions()))
	for _, address := range systemContracts {
		a.named = append(a.named, evm.HashAddress(address))
	}
	for _, withdrawal := range block.Withdrawals() {
		a.named = append(a.named, evm.HashAddress(withdrawal.Address))
	}
}

// systemContracts are those that blocks call before and after their transactions.
var systemContracts = []common.Address{
	params.BeaconRootsAddress, params.HistoryStorageAddress, params.WithdrawalQueueAddress, params.ConsolidationQueueAddress,
}

// waited is called after each read of the replay, in which a transaction or system calls run. It begins the runs aside once the
// replay has waited often enough. It may be called by several goroutines.
func (a *asideRun) waited(running int) {
	if a == nil {
		return
	}
	reads, waits := a.calls.Add(1), a.waits.Load()
	if waits < asideAfter || waits*asideShare < reads || len(a.expected) == 0 || !a.begun.CompareAndSwap(false, true) {
		return
	}
	first := running + 1
	if a.paths != noPaths {
		first = running // the replay reads no nodes while it runs
	}
	if end := slices.Max(a.expected) + 1; first < end {
		a.runs.Go(func() { a.run(first, end) })
	}
}

// EnterAside waits for a place in which a block may run aside. Each block may take memory as a call does, so there are as many places as
// for calls. leave gives it back.
func (e *Executor) EnterAside(ctx context.Context) (leave func(), err error) {
	if err := e.asides.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { e.asides.Release(1) }, nil
}

// ReplayAside runs the given transactions of a block aside, in ascending order, so that a replay that traces them later need not wait
// for what they read. It is for blocks after one whose transactions have run aside (see [Replay.RanAside]). The caller has a place
// ([Executor.EnterAside]). It returns when all have run, or when ctx is done. It does nothing if reads of the state take no round trips.
func (e *Executor) ReplayAside(ctx context.Context, parent Parent, block Block, options ReplayOptions, transactions []int) {
	if len(transactions) == 0 {
		return
	}
	a, _ := e.newAsideRun(ctx, parent, block, options)
	if a == nil {
		return
	}
	defer a.cancel()
	a.expected = transactions
	a.run(systemCalls, transactions[len(transactions)-1]+1)
	a.runs.Wait()
}

// stop ends the runs aside.
func (a *asideRun) stop() {
	if a != nil {
		a.cancel()
		a.runs.Wait()
	}
}

// run runs the expected transactions from first up to but without end aside.
func (a *asideRun) run(first, end int) {
	defer ignorePanic()
	known := a.known()
	var indices []int
	for i := first; i < end; i++ { // without known states the replay runs all up to the last one
		needed := slices.Contains(a.expected, i) || i == systemCalls && slices.Contains(a.expected, 0)
		if needed || !known.exact() {
			indices = append(indices, i)
		}
	}
	a.readNamed(indices)
	limit := int64(min(a.block.Header().GasLimit, math.MaxInt64))
	gas := semaphore.NewWeighted(limit) // bounds the memory of the runs, which gas pays for
	var next atomic.Int64
	for range min(asideRuns, len(indices)) {
		a.runs.Go(func() {
			defer ignorePanic()
			w := a.newWorker(known)
			defer w.release()
			for a.ctx.Err() == nil && w.db.failure() == nil { // after a failure the other workers run the rest
				i := int(next.Add(1)) - 1
				if i >= len(indices) {
					return
				}
				w.step(indices[i], gas, limit)
			}
		})
	}
}

// ignorePanic ends a run aside that panics. A panic that is not due to a wrong guess recurs in the replay.
func ignorePanic() { _ = recover() }

// readNamed reads what transactions name: the senders, the receivers and their codes.
func (a *asideRun) readNamed(indices []int) {
	accounts := append([]common.Hash{evm.HashAddress(a.block.Header().Coinbase)}, a.named...)
	for _, i := range indices {
		if i == systemCalls {
			continue
		}
		tx, err := a.block.Transaction(i)
		if err != nil {
			return
		}
		if to := tx.To(); to != nil {
			accounts = append(accounts, evm.HashAddress(*to))
		}
		if a.options.Senders != nil {
			accounts = append(accounts, evm.HashAddress(a.options.Senders[i]))
		}
	}
	a.readAccounts(accounts)
}

// readAccounts reads accounts and their codes.
func (a *asideRun) readAccounts(accounts []common.Hash) {
	slices.SortFunc(accounts, common.Hash.Cmp)
	accounts = slices.Compact(accounts)
	a.parent.Ahead.Read(a.ctx, accounts)
	if a.paths != noPaths {
		slots := make(map[common.Hash][]common.Hash, len(accounts))
		for _, address := range accounts {
			slots[address] = nil
		}
		a.parent.Ahead.ReadPaths(a.ctx, slots)
	}
}

// knownSteps is what is stored of the states within a block.
type knownSteps struct {
	list    []byte        // the access list as RLP; nil: there is none
	changes StoredChanges // nil: they are not stored
}

func (k *knownSteps) exact() bool { return k.list != nil || k.changes != nil }

// known reads what is stored.
func (a *asideRun) known() (k knownSteps) {
	stored := a.options.Stored
	if stored == nil {
		return k
	}
	var err error
	if a.block.Header().BlockAccessListHash != nil {
		k.list, err = stored.AccessList(a.ctx)
	} else {
		k.changes, err = stored.Changes(a.ctx)
	}
	if err != nil {
		return knownSteps{}
	}
	return k
}
