package execute

import (
	"errors"

	"ashlar/evm/execute/scratch"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// callMemory is the limit, in bytes, for the state that one call reads and writes.
//
// It does not limit what frames address (see frameMemory), but the state that is kept to be
// reverted or read again, which gas does not bound. 100 gas keep some 300 bytes (TSTORE),
// which is a gibibyte for 360 million; 2,600 gas keep an account with up to 24 KiB of code.
// 128 MiB hold the 171,000 cold slots that 360 million gas can read, the
// 138,000 cold accounts, and 5,200 contracts with code of the greatest length.
//
// newCallPlaces limits how many calls run at once. Together they stay below (128 + 256) MiB
// times that number, plus what the collector has not freed yet. On readers of a cluster, blocks that run aside for searches
// may take as much again.
const callMemory = 128 << 20

// Sizes of entries in bytes, measured and rounded up: in the maps of the state and in the
// journal.
const (
	slotBytes     = 256
	accountBytes  = 768 // with its own maps, without its code
	writeBytes    = 320 // map entry, journal, refund
	transferBytes = 320 // for the account that gains and the one that pays, in the journal
	logBytes      = 384 // besides its data
	snapshotBytes = 44  // with its mark in the warmList
)

// Sizes in bytes of what a [scratch.State] keeps besides its entries, which it counts itself: an
// entry stays when its first use is reverted, even if it was not read for lack of gas.
const (
	warmBytes        = 80  // of an account or a slot, in the journal
	readAccountBytes = 384 // in place of accountBytes
)

var errCallMemory = errors.New("execution aborted (memory limit of 128 MiB)")

// memoryMeter counts what the state of one call holds, or what that of a simulation of blocks reads and logs.
type memoryMeter struct {
	read     int        // bytes, until the call ends
	written  int        // bytes in this run, including reverted ones: maps and lists do not shrink
	exceeded error      // the limit that is exceeded, nil for none; then nothing more is kept
	machine  *vm.EVM    // that runs, nil for none
	codes    *codeWatch // of the run; nil: it ends soon enough without
}

// write counts written bytes. It reports whether the call is still within its limit.
func (m *memoryMeter) write(bytes int) bool {
	m.written += bytes
	return m.check()
}

// fetch is write for bytes read.
func (m *memoryMeter) fetch(bytes int) bool {
	m.read += bytes
	return m.check()
}

func (m *memoryMeter) check() bool {
	if m.exceeded == nil && m.read+m.written > callMemory {
		m.exceeded = errCallMemory
		if m.machine != nil {
			m.machine.Cancel()
		}
	}
	return m.exceeded == nil
}

// errUnwound is the panic by which a state or a hook ends a run: the EVM offers them no other way. [unwound]
// recovers it.
var errUnwound = errors.New("execute: the run was unwound")

// endCanceled ends the run of a canceled EVM where it calls or creates a contract or hashes memory,
// and elsewhere in code that a codeWatch finds. The EVM itself looks only at jumps, and needs none in
// code of megabytes, which overrides can have: 12,000 creations with 8 MiB each take 14 seconds, and
// hashes of as much 10.
func (m *memoryMeter) endCanceled() {
	if m.machine != nil && m.machine.Cancelled() {
		panic(errUnwound)
	}
}

// unwound is run, or errAborted if a panic with errUnwound has ended it.
func unwound(run func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked == errUnwound {
			err = errAborted
		} else if panicked != nil {
			panic(panicked)
		}
	}()
	return run()
}

// callState is a state with a memory limit, for one call: a scratchState or a warmState.
// The EVM checks for an abort only at jumps. Until then, writes over the limit are dropped:
// the call's result will be dropped too.
type callState struct {
	vm.StateDB
	memory     memoryMeter
	keepsEmpty bool // empty accounts stay: the rules are from before EIP-158
}

// Prepare implements vm.StateDB. The block access list of a call is not used.
func (s *callState) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	rules.IsAmsterdam = false
	s.keepsEmpty = !rules.IsEIP158
	s.StateDB.Prepare(rules, sender, coinbase, to, precompiles, list)
}

func (s *callState) SetState(address common.Address, slot, value common.Hash) common.Hash {
	if !s.memory.write(writeBytes) {
		return common.Hash{}
	}
	return s.StateDB.SetState(address, slot, value)
}

func (s *callState) SetTransientState(address common.Address, slot, value common.Hash) {
	if s.memory.write(writeBytes) {
		s.StateDB.SetTransientState(address, slot, value)
	}
}

// AddBalance does not touch the fee recipient and the sender when a call without a gas
// price pays them nothing. Only before EIP-158 could a tracer or a later call see the
// difference: the recipient exists from then on.
func (s *callState) AddBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	unpaid := !s.keepsEmpty && amount.IsZero() && (reason == tracing.BalanceIncreaseRewardTransactionFee || reason == tracing.BalanceIncreaseGasReturn)
	if unpaid || !s.memory.write(transferBytes) {
		return uint256.Int{}
	}
	return s.StateDB.AddBalance(address, amount, reason)
}

func (s *callState) AddLog(log *types.Log) {
	if s.memory.write(logBytes + len(log.Data)) {
		s.StateDB.AddLog(log)
	}
}

// Snapshot is never dropped: the EVM may revert to it. It ends a run that is canceled.
func (s *callState) Snapshot() int {
	s.memory.endCanceled()
	s.memory.write(snapshotBytes)
	return s.StateDB.Snapshot()
}

// AddPreimage implements vm.StateDB. Preimages are not kept. It ends a run that is canceled.
func (s *callState) AddPreimage(common.Hash, []byte) { s.memory.endCanceled() }

// scratchState is a [scratch.State] that counts what becomes warm. Over the limit its entries are
// those of other accounts and slots, so nothing is counted on them any more.
type scratchState struct {
	*scratch.State
	memory *memoryMeter
}

// AddAddressToAccessList implements vm.StateDB.
func (s *scratchState) AddAddressToAccessList(address common.Address) {
	if s.memory.write(warmBytes) {
		s.State.AddAddressToAccessList(address)
	}
}

// AddSlotToAccessList implements vm.StateDB.
func (s *scratchState) AddSlotToAccessList(address common.Address, slot common.Hash) {
	if s.memory.write(warmBytes) {
		s.State.AddSlotToAccessList(address, slot)
	}
}

// AddRefund implements vm.StateDB.
func (s *scratchState) AddRefund(gas uint64) {
	if s.memory.exceeded == nil {
		s.State.AddRefund(gas)
	}
}

// SubRefund implements vm.StateDB.
func (s *scratchState) SubRefund(gas uint64) {
	if s.memory.exceeded == nil {
		s.State.SubRefund(gas)
	}
}
