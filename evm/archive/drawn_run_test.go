package archive_test

import (
	"math/big"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// drawnRun is a block that is run in order. It knows the keys that its transactions touch, and reads their values from the
// state of go-ethereum after each step.
type drawnRun struct {
	*drawn
	header       *types.Header
	transactions int
	state        tracing.StateDB
	keys         map[string]func() string // by partition: the value
	last         map[string]string        // values after the last step
	changes      map[string][]drawnStep   // of all keys that are known
	storage      map[string]bool          // accounts with storage before the block, or whose slots a step has changed
	wiped        bool                     // an account of these was destroyed
}

// runInOrder runs the transactions of a block.
func (d *drawn) runInOrder(a *archive.Archive, executor *execute.Executor, number uint64) *drawnRun {
	d.Helper()
	header, err := a.Header(d.Context(), number)
	d.must(err)
	parent, err := a.Header(d.Context(), number-1)
	d.must(err)
	body, err := a.Body(d.Context(), number, nil)
	d.must(err)
	block, err := body.Block(header.Header)
	d.must(err)
	r := &drawnRun{
		drawn: d, header: header.Header, transactions: len(block.Transactions()), keys: make(map[string]func() string),
		last: make(map[string]string), changes: make(map[string][]drawnStep), storage: make(map[string]bool),
	}
	for _, address := range []common.Address{params.BeaconRootsAddress, params.HistoryStorageAddress} {
		for _, slot := range systemSlots(header.Header) {
			r.touchSlot(address, slot, common.Hash{}, common.Hash{})
		}
	}
	on := execute.Parent{Header: parent.Header, State: a.StateAt(number - 1), Ancestors: archive.Ancestors{History: &a.History}}
	d.must(executor.Replay(d.Context(), on, execute.Decoded(block), execute.ReplayOptions{}, func(replay *execute.Replay) error {
		for range block.Transactions() {
			if err := replay.Trace(d.Context(), execute.Tracer{Hooks: r.hooks(replay.Next()), Stop: func(error) {}}); err != nil {
				return err
			}
		}
		return nil
	}))
	return r
}

// hooks watches a transaction.
func (r *drawnRun) hooks(index int) *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart: func(env *tracing.VMContext, _ *types.Transaction, from common.Address) {
			r.touch(from)
			if r.state = env.StateDB; index == 0 {
				r.end(0)
			}
		},
		OnTxEnd: func(*types.Receipt, error) { r.end(index + 1) },
		OnEnter: func(_ int, _ byte, from, to common.Address, _ []byte, _ uint64, _ *big.Int) {
			r.touch(from)
			r.touch(to)
		},
		OnBalanceChange: func(address common.Address, _, _ *big.Int, _ tracing.BalanceChangeReason) { r.touch(address) },
		OnNonceChange:   func(address common.Address, _, _ uint64) { r.touch(address) },
		OnCodeChange:    func(address common.Address, _ common.Hash, _ []byte, _ common.Hash, _ []byte) { r.touch(address) },
		OnStorageChange: r.touchSlot,
	}
}

func (r *drawnRun) touch(address common.Address) {
	hash := crypto.Keccak256Hash(address[:])
	p := string(hash[:])
	if r.keys[p] == nil {
		account := r.accountAt(p, r.header.Number.Uint64()-1)
		r.storage[p] = account != nil && account.Root != types.EmptyRootHash
	}
	r.know(p, func() string {
		if !r.state.Exist(address) {
			return ""
		}
		balance := new(uint256.Int).Set(r.state.GetBalance(address))
		code := r.state.GetCodeHash(address)
		return accountText(&types.StateAccount{Nonce: r.state.GetNonce(address), Balance: balance, CodeHash: code[:]})
	})
}

func (r *drawnRun) touchSlot(address common.Address, slot, _, _ common.Hash) {
	r.touch(address)
	account, hash := crypto.Keccak256Hash(address[:]), crypto.Keccak256Hash(slot[:])
	r.know(string(account[:])+string(hash[:]), func() string {
		return string(common.TrimLeftZeroes(r.state.GetState(address, slot).Bytes()))
	})
}

// know adds a key, which no step has changed until now.
func (r *drawnRun) know(p string, value func() string) {
	if r.keys[p] == nil {
		r.keys[p], r.last[p], r.changes[p] = value, r.value(p, r.header.Number.Uint64()-1), nil
	}
}

// end ends a step.
func (r *drawnRun) end(step int) {
	storage := make(map[string]bool)
	for p, read := range r.keys {
		value := read()
		if value == r.last[p] {
			continue
		}
		if len(p) == 64 {
			storage[p[:32]] = true
		} else if value == "" && r.storage[p] {
			r.wiped = true
		}
		r.last[p], r.changes[p] = value, append(r.changes[p], drawnStep{step, value})
	}
	for p := range storage {
		r.storage[p] = true
	}
}
